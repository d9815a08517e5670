"""A program that is not there."""

import subprocess

FAILS = "FileNotFoundError"


def main(rank, world_size):
    subprocess.run(["no-such-program-anywhere"])
