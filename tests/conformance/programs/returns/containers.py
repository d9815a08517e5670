"""Lists, tuples, dictionaries, sets, ranges, bytes, one within another."""


def main(rank, world_size):
    return {
        "list": [1, [2, (3, {"x": ()})]],
        (1, 2): {3, 4},
        None: frozenset({"a"}),
        "bytes": b"\x00\xff",
        "range": range(2, 9, 3),
        rank: "key is a number",
    }
