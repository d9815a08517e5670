"""A child that ends by an error of its own: its exit code says so."""

import multiprocessing
import os


def fail():
    os._exit(9)


def main(rank, world_size):
    child = multiprocessing.get_context("fork").Process(target=fail)
    child.start()
    child.join()
    return child.exitcode
