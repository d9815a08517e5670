"""What ranks import for notebook 20: one module for each exercise, and what those share."""
