"""A rank spawns a child with a function of torch's own module."""

import math
import multiprocessing


def main(rank, world_size):
    context = multiprocessing.get_context("spawn")
    with context.Pool(1) as pool:
        return pool.map(math.factorial, [3, 4])
