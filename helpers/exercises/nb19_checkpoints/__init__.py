"""Exercises of notebook 19: checkpoints that survive any death, in parts, while training continues, exact."""
