"""Exercises of notebook 14: pipeline parallelism."""
