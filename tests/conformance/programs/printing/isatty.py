"""A rank's streams are no terminal, and can be asked."""

import sys


def main(rank, world_size):
    return sys.stdout.isatty(), sys.stdout.encoding.lower(), sys.stdout.writable()
