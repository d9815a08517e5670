"""Twenty thousand lines, of which the last one counts most."""

DIFFERS = {
    "untraced": (
        [None, None],
        "of a long output the beginning and the end are kept, with a mark between them",
    ),
    "launch": (
        [None, None],
        "of a long output the beginning and the end are kept, with a mark between them",
    ),
    "ranks": (
        [None, None],
        "of a long output the beginning and the end are kept, with a mark between them",
    ),
}


def main(rank, world_size):
    for i in range(20_000):
        print(f"line {i:06} of rank {rank}")
    print("the last line")
