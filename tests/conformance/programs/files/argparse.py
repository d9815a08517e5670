"""argparse with defaults, as every training script has it."""

import argparse

LIKE = "torchrun"


def main(rank, world_size):
    parser = argparse.ArgumentParser()
    parser.add_argument("--lr", type=float, default=0.1)
    parser.add_argument("--epochs", type=int, default=3)
    args = parser.parse_args()
    return vars(args)
