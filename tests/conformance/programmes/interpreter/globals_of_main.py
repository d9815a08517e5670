"""globals() holds the cell's names, and a name made there can be used."""

STEPS = 3


def main(rank, world_size):
    globals()["MADE"] = rank + 1
    return MADE, "STEPS" in globals(), "main" in globals()
