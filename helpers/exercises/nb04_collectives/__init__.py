"""Exercises of notebook 04: collectives."""
