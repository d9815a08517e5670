"""A script that stops with a hint where it was not started by torchrun."""

import os
import sys

LIKE = "torchrun"


def main(rank, world_size):
    if "LOCAL_RANK" not in os.environ or "MASTER_ADDR" not in os.environ:
        sys.exit("start this script with torchrun")
    return "started by torchrun"
