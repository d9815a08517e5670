"""Exercises of notebook 12: ZeRO and FSDP."""
