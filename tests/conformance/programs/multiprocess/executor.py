"""A ProcessPoolExecutor with a function of the cell."""

import multiprocessing
from concurrent.futures import ProcessPoolExecutor


def cube(x):
    return x**3


def main(rank, world_size):
    context = multiprocessing.get_context("fork")
    with ProcessPoolExecutor(2, mp_context=context) as pool:
        return list(pool.map(cube, [1, 2, 3 + rank]))
