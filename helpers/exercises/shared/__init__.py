"""Modules shared by exercises of several notebooks, like `shared.py` and `in_ranks.py` of one notebook."""
