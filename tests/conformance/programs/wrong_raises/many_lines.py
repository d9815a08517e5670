"""An error with a text of many lines."""

FAILS = "RuntimeError"


def main(rank, world_size):
    raise RuntimeError("first line\nsecond line\n\nlast line")
