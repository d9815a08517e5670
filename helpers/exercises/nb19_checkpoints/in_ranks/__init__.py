"""Modules imported by ranks for notebook 19, one for each exercise."""
