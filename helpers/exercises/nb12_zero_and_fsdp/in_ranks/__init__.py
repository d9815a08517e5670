"""Modules that ranks import for notebook 12; notebook 13 builds its models with them, too."""
