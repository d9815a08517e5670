"""main returns an object of a class of its own."""

DIFFERS = {
    "untraced": ("CannotReturn", "only plain data comes back; mp.spawn drops what main returns"),
    "launch": ("CannotReturn", "only plain data comes back; mp.spawn drops what main returns"),
    "ranks": ([None, None], "a cell's value that is no plain data is printed on the rank"),
}


class Result:
    loss = 0.5


def main(rank, world_size):
    return Result()
