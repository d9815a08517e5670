"""Modules imported by ranks for notebook 20: one for each exercise, and those shared by exercises."""
