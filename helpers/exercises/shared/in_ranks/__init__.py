"""Modules that ranks import with the answers of several notebooks: right values must not be here."""
