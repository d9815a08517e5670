"""Exercises of notebook 19: checkpoints that survive failures, and are sharded, asynchronous and exact."""
