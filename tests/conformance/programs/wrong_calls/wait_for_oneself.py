"""A loop that waits for a flag which nobody sets."""

FAILS = "hang"


def main(rank, world_size):
    flag = False
    while not flag:
        pass
