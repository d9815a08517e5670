"""A deep recursion under a raised limit."""

import sys


def down(n):
    return 0 if n == 0 else 1 + down(n - 1)


def main(rank, world_size):
    sys.setrecursionlimit(5000)
    return down(4000)
