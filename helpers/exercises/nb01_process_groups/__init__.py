"""Exercises of notebook 01: process groups, how they start, and groups within the world."""
