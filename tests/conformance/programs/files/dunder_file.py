"""A script knows its file; a cell has none."""

import os

DIFFERS = {
    "untraced": ("NameError", "a cell is no file, in a notebook as on a rank"),
    "launch": ("NameError", "a cell is no file, in a notebook as on a rank"),
    "ranks": ("NameError", "a cell is no file, in a notebook as on a rank"),
}


def main(rank, world_size):
    return os.path.splitext(__file__)[1]
