"""A function with functools.cache is pickled by its name."""

import functools
import pickle


@functools.cache
def slow(n):
    return n * n


def main(rank, world_size):
    again = pickle.loads(pickle.dumps(slow))
    return again(4), again is slow, slow.cache_info().hits
