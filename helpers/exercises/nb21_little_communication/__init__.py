"""Exercises of notebook 21: fewer bits, and fewer synchronizations."""
