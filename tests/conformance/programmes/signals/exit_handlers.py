"""atexit handlers run when a worker of torchrun ends well."""

import atexit

LIKE = "torchrun"


def main(rank, world_size):
    atexit.register(print, "the last thing on rank", rank)
    return rank
