"""Exercises of notebook 00: ranks, their shares of the work, and their failures."""
