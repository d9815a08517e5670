"""atexit handlers run when a worker of torchrun ends well."""

import atexit

LIKE = "torchrun"
DIFFERS = {
    "ranks": (
        [0, 1],
        "ranks stay after a cell, so what they do at their end is not done at its end",
    ),
}


def main(rank, world_size):
    atexit.register(print, "the last thing on rank", rank)
    return rank
