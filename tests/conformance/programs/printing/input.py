"""input() finds nobody to answer."""

FAILS = "EOFError"


def main(rank, world_size):
    return input("your name? ")
