"""Clocks go on while a rank sleeps."""

import time


def main(rank, world_size):
    wall, cpu = time.perf_counter(), time.process_time()
    time.sleep(0.3)
    return time.perf_counter() - wall >= 0.3, time.process_time() - cpu < 0.3
