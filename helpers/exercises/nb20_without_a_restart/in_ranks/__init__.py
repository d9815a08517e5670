"""Modules that ranks import for notebook 20, one per exercise, and those that exercises share."""
