"""An error whose text cannot be made."""

FAILS = "Odd"


class Odd(Exception):
    def __str__(self):
        raise TypeError("no text for you")


def main(rank, world_size):
    raise Odd
