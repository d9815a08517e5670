"""Exercises of notebook 18: torchrun, its environment, its failures, and checkpoints."""
