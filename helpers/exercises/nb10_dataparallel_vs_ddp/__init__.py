"""Exercises of notebook 10: DataParallel against DDP, and how well each of them scales."""
