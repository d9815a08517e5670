"""Exercises of notebook 20: who is in, copying the state of a live one, going on without the dead."""
