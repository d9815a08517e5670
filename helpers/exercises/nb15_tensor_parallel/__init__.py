"""Exercises of notebook 15: tensor parallelism."""
