"""Exercises of notebook 11: profiling."""
