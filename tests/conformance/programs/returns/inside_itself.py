"""main returns a list that holds itself."""

DIFFERS = {
    "untraced": ("CannotReturn", "a value without an end cannot travel; the error says so"),
    "launch": ("CannotReturn", "a value without an end cannot travel; the error says so"),
    "ranks": ([None, None], "a cell's value that is no plain data is printed on the rank"),
}


def main(rank, world_size):
    x = []
    x.append(x)
    return len(x) and x
