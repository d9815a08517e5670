"""Exercises of notebook 12: pipeline parallelism."""
