"""A caught error is printed with its traceback."""

import traceback


def fail(n):
    return 1 / n


def main(rank, world_size):
    try:
        fail(0)
    except ZeroDivisionError:
        traceback.print_exc()
        return traceback.format_exc().strip().split("\n")[-1]
