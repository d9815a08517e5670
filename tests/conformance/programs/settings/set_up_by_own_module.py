"""A module of one's own whose functions seed all generators and set up warnings, logging and numpy."""

import os
import sys

SETS = True
TEXT = """
import logging, random, sys, warnings
import numpy as np
import torch

def seed_everything(seed):
    random.seed(seed)
    np.random.seed(seed)
    torch.manual_seed(seed)

def set_up():
    logging.basicConfig(level=logging.INFO, format="%(message)s")
    warnings.filterwarnings("error", message="mine")
    np.set_printoptions(precision=2)
    sys.setrecursionlimit(4567)
"""
with open(f"half-{os.getpid()}", "w") as file:
    file.write(TEXT)
os.replace(file.name, "conformance_set_up_module.py")
sys.path.insert(0, os.getcwd())
import logging  # noqa: E402
import random  # noqa: E402
import warnings  # noqa: E402

import conformance_set_up_module as mine  # noqa: E402
import numpy as np  # noqa: E402
import torch  # noqa: E402

mine.seed_everything(3)
mine.set_up()


def main(rank, world_size):
    logging.info("on rank %d", rank)
    try:
        warnings.warn("mine", stacklevel=1)
    except UserWarning:
        drawn = random.random(), np.random.rand(), torch.rand(1)
        return drawn, str(np.array([1 / 3])), sys.getrecursionlimit()
