"""sys.exit with a text, which is printed."""

import sys

FAILS = "SystemExit"


def main(rank, world_size):
    sys.exit("no data found")
