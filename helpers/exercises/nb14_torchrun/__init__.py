"""Exercises of notebook 14: torchrun, its environment, its failures, and checkpoints."""
