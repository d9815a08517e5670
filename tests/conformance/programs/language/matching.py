"""match statements with classes of the cell."""

from dataclasses import dataclass


@dataclass
class Send:
    to: int


def main(rank, world_size):
    def read(message):
        match message:
            case Send(to=0):
                return "to the first"
            case Send(to=n):
                return f"to {n}"
            case [first, *rest]:
                return first, rest
            case _:
                return "?"

    return [read(m) for m in (Send(0), Send(5), [1, 2, 3], None)]
