"""Real data for the notebooks, from files that are already on this machine. Nothing downloads."""
