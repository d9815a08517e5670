"""What ranks import for notebook 19: one module for each exercise, and what those share."""
