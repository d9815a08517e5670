"""Exercises of notebook 00: what a rank is, what is its share, and how it can fail."""
