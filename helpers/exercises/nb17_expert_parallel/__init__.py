"""Exercises of notebook 17: expert parallelism."""
