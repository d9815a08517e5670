"""A namedtuple comes back with its names."""

from typing import NamedTuple


class Result(NamedTuple):
    loss: float
    steps: int


def main(rank, world_size):
    return Result(0.5, rank)
