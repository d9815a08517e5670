"""torch's multi-process tests, run by plain processes and by the engine, with a comparison of the results."""
