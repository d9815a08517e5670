"""Modules imported by ranks for notebook 23."""
