"""Exercises of notebook 07: which rank gets which sample."""
