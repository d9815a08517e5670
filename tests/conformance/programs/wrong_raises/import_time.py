"""An error at module level, before any rank has anything to do."""

FAILS = "ZeroDivisionError"

RATE = 1 / 0


def main(rank, world_size):
    return RATE
