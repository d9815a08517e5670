"""Exercises of notebook 06: hangs, each with its repair."""
