"""Exercises of notebook 19: checkpoints that survive any death, in parts, beside the training, exact."""
