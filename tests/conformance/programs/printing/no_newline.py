"""The last line has no end."""


def main(rank, world_size):
    print("first")
    print("no end", end="")
