"""main returns a function, by mistake."""

DIFFERS = {
    "untraced": ("CannotReturn", "only plain data comes back; mp.spawn drops what main returns"),
    "launch": ("CannotReturn", "only plain data comes back; mp.spawn drops what main returns"),
    "ranks": ([None, None], "a cell's value that is no plain data is printed on the rank"),
}


def main(rank, world_size):
    return main
