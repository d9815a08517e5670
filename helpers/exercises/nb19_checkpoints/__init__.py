"""Exercises of notebook 19: checkpoints that survive any failure, are sharded, asynchronous, and exact."""
