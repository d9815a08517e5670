"""globals() holds the cell's names, and a name made there can be used."""

STEPS = 3
DIFFERS = {
    "untraced": (
        [(1, False, True), (2, False, True)],
        "a function is sent with the names that its code uses",
    ),
    "launch": (
        [(1, False, True), (2, False, True)],
        "a function is sent with the names that its code uses",
    ),
}


def main(rank, world_size):
    globals()["MADE"] = rank + 1
    return MADE, "STEPS" in globals(), "main" in globals()
