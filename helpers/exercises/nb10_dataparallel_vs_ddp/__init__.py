"""Exercises of notebook 10: DataParallel against DDP, and the scaling of both."""
