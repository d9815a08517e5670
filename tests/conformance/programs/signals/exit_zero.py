"""sys.exit() in main, with success."""

import sys

FAILS = "SystemExit"
DIFFERS = {
    "untraced": (
        [None, None],
        "to leave with success is to return nothing, as it is for a job that starts the rank",
    ),
    "launch": (
        [None, None],
        "to leave with success is to return nothing, as it is for a job that starts the rank",
    ),
    "ranks": (
        [None, None],
        "to leave with success is to return nothing, as it is for a job that starts the rank",
    ),
}


def main(rank, world_size):
    sys.exit()
