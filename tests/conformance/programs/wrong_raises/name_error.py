"""A name that nobody defined."""

FAILS = "NameError"


def main(rank, world_size):
    return undefined_thing
