"""Exercises of notebook 01: process groups, starting them, and groups within the world."""
