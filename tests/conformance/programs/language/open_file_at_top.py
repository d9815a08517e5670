"""A file that is opened at module level: each new process opens it again."""

import os

NULL = open(os.devnull, "w")

DIFFERS = {
    "untraced": ("CannotSend", "an open file of the notebook cannot travel; the error names it"),
    "launch": ("CannotSend", "an open file of the notebook cannot travel; the error names it"),
}


def main(rank, world_size):
    return NULL.write("three")
