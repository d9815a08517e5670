"""What runs in the ranks for notebook 15."""
