"""Modules that ranks import for notebook 22, one for each exercise that runs processes."""
