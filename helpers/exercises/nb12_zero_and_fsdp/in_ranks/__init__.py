"""Modules imported by ranks for notebook 12, and for the models of notebook 13."""
