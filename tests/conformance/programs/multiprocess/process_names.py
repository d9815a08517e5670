"""What multiprocessing says about the rank's own process."""

import multiprocessing


def main(rank, world_size):
    process = multiprocessing.current_process()
    return process.daemon, multiprocessing.active_children()
