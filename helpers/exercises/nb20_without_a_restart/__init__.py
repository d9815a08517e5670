"""Exercises of notebook 20: agree on the members, copy a living replica's state, shrink."""
