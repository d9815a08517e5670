"""What exercises of several notebooks share, as `shared.py` and `in_ranks.py` are shared within one."""
