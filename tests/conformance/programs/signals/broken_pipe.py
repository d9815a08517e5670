"""A write into a pipe that nobody reads is an error, not the end of the process."""

import os

FAILS = "BrokenPipeError"


def main(rank, world_size):
    reader, writer = os.pipe()
    os.close(reader)
    os.write(writer, b"x")
