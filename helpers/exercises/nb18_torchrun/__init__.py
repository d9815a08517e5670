"""Exercises of notebook 18: torchrun, its environment, and its reports on failures."""
