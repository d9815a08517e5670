"""The recursion limit is Python's own, and so are other settings."""

import sys


def main(rank, world_size):
    return (
        sys.getrecursionlimit(),
        sys.flags.optimize,
        sys.getswitchinterval(),
        sys.gettrace() is None,
    )
