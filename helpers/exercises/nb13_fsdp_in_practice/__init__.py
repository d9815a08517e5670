"""Exercises of notebook 13: FSDP in practice."""
