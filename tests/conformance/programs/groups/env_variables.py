"""The variables of torchrun are there, as text, and belong together."""

import os

INIT = False
LIKE = "torchrun"
WORLD_SIZE = 3


def main(rank, world_size):
    names = ["RANK", "LOCAL_RANK", "WORLD_SIZE", "LOCAL_WORLD_SIZE"]
    return {name: os.environ[name] for name in names}
