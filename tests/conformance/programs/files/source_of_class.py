"""inspect.getsource and signature of a class of the cell."""

import inspect

DIFFERS = {
    "untraced": (
        "OSError",
        "inspect asks for a class by its file, and a cell is none, as in any kernel",
    ),
    "launch": (
        "OSError",
        "inspect asks for a class by its file, and a cell is none, as in any kernel",
    ),
    "ranks": (
        "OSError",
        "inspect asks for a class by its file, and a cell is none, as in any kernel",
    ),
}


class Thing:
    """A thing."""

    def __init__(self, a, b=2):
        self.a, self.b = a, b


def main(rank, world_size):
    return (
        inspect.getdoc(Thing),
        str(inspect.signature(Thing)),
        "self.a" in inspect.getsource(Thing),
    )
