"""A decorator of the cell around main."""

import functools


def twice(f):
    @functools.wraps(f)
    def both(*args):
        return [f(*args), f(*args)]

    return both


@twice
def main(rank, world_size):
    return rank + 1
