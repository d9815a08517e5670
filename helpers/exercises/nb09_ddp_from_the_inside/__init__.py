"""Exercises of notebook 09: DDP from the inside."""
