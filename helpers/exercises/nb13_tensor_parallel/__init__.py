"""Exercises of notebook 13: tensor parallelism."""
