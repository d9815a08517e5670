"""A list of fifty thousand small parts."""


def main(rank, world_size):
    return [(i, str(i)) for i in range(50_000)]
