"""Exercises of notebook 20: who is in, taking over from a replica that lives, going on without the dead."""
