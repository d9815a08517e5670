"""A module that is not installed."""

FAILS = "ModuleNotFoundError"


def main(rank, world_size):
    import no_such_library

    return no_such_library
