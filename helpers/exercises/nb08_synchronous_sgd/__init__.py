"""Exercises of notebook 08: synchronous SGD."""
