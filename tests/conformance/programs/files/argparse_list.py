"""argparse with arguments given as a list."""

import argparse


def main(rank, world_size):
    parser = argparse.ArgumentParser()
    parser.add_argument("--lr", type=float)
    return parser.parse_args(["--lr", str(0.5 + rank)]).lr
