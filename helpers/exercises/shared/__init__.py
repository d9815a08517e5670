"""Modules that exercises of several notebooks share, as `shared.py` and `in_ranks.py` within one."""
