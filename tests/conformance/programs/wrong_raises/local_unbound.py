"""A local name before it has a value."""

FAILS = "UnboundLocalError"


def main(rank, world_size):
    if rank > 5:
        value = 1
    return value
