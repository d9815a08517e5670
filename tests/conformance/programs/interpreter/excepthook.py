"""Joining the group has set a hook for errors; the hook for what cannot be raised is Python's own."""

import sys


def main(rank, world_size):
    return sys.excepthook is sys.__excepthook__, sys.unraisablehook is sys.__unraisablehook__
