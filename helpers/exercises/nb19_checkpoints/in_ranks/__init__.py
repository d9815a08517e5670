"""Modules that ranks import for notebook 19, one for each exercise."""
