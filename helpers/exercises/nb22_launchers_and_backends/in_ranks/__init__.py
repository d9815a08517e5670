"""Modules imported by ranks for notebook 22, one for each exercise that runs processes."""
