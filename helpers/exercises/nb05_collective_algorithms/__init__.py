"""Exercises of notebook 05: how collectives work."""
