"""Exercises of notebook 03: nonblocking transfers."""
