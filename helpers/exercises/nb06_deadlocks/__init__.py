"""Exercises of notebook 06: repair hanging programs, and find the rank that caused a hang."""
