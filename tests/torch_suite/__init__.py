"""The multi-process tests that torch ships, run by plain processes and by the engine, and compared."""
