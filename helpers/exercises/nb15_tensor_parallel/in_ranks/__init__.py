"""Modules that run in the ranks for notebook 15."""
