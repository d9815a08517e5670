"""A pool of forked processes on each rank."""

import multiprocessing


def square(x):
    return x * x


def main(rank, world_size):
    with multiprocessing.get_context("fork").Pool(2) as pool:
        return pool.map(square, range(5 + rank))
