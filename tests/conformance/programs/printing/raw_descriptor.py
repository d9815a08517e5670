"""os.write on descriptor 1, and print, in order."""

import os


def main(rank, world_size):
    print("by print", flush=True)
    os.write(1, b"by descriptor 1\n")
    os.write(2, b"by descriptor 2\n")
