"""Prints of all but rank 0 are switched off by a print of one's own."""

import builtins


def main(rank, world_size):
    def quiet(*words, **how):
        force = how.pop("force", False)
        if rank == 0 or force:
            builtins.print(*words, **how)

    print = quiet
    print("only rank 0 says this")
    print("forced", force=True)
