"""Exercises of notebook 02: blocking send and receive."""
