"""A recursion without an end."""

FAILS = "RecursionError"


def down(n):
    return down(n + 1)


def main(rank, world_size):
    return down(0)
