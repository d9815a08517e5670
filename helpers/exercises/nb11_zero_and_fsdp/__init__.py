"""Exercises of notebook 11: ZeRO and FSDP."""
