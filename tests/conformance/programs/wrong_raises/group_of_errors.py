"""An ExceptionGroup."""

FAILS = "ExceptionGroup"


def main(rank, world_size):
    raise ExceptionGroup("two things", [ValueError("one"), KeyError("two")])
