"""Modules that ranks import for notebook 23."""
