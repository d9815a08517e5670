"""Modules that ranks import for notebook 20, one for each exercise, and what those share."""
