"""An error in a pool's thread is raised where its result is asked for."""

from concurrent.futures import ThreadPoolExecutor

FAILS = "ZeroDivisionError"


def main(rank, world_size):
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(lambda: 1 // rank).result() if rank == 0 else 0
