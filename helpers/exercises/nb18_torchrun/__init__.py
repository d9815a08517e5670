"""Exercises of notebook 18: torchrun, its environment, and the failures that it reports."""
