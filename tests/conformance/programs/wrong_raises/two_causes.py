"""Two ranks fail for causes of their own: the first one in time counts."""

import time

FAILS = "KeyError"


def main(rank, world_size):
    if rank == 1:
        raise KeyError("early")
    time.sleep(8)
    raise ValueError("late")
