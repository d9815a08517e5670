"""Modules imported by ranks with the answers of several notebooks. They must not contain right values."""
