"""Exercises of notebook 06: repair programs that hang, and find the rank that caused a hang."""
