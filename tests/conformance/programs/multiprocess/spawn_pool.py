"""A pool of spawned processes is given a function of the programme's own."""

import multiprocessing

START = 100


def shifted(number):
    return START + number


def main(rank, world_size):
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        return pool.map(shifted, [rank, 7])
