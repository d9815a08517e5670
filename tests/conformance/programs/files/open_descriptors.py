"""A new process holds open none of the files that its parent's kernel works with."""

import os


def main(rank, world_size):
    names = []
    for fd in range(3, 200):
        if os.path.exists(f"/proc/self/fd/{fd}"):
            names.append(os.readlink(f"/proc/self/fd/{fd}"))
    return [name for name in names if name.endswith((".ipynb", ".sqlite", ".json"))]
