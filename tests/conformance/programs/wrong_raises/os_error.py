"""A file that is not there, with its number and its name."""

FAILS = "FileNotFoundError"


def main(rank, world_size):
    with open("no-such-config.yaml") as file:
        return file.read()
