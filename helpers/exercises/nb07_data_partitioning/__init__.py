"""Exercises of notebook 07: the distribution of samples over ranks."""
