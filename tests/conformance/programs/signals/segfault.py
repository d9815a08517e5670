"""A read of address zero."""

import ctypes

FAILS = "SIGSEGV"


def main(rank, world_size):
    if rank == 0:
        ctypes.string_at(0)
    import time

    time.sleep(20)
