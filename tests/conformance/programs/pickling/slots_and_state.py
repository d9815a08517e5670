"""Slots and __getstate__ go through pickle."""

import pickle


class Point:
    __slots__ = ("x", "y")

    def __init__(self, x, y):
        self.x, self.y = x, y

    def __getstate__(self):
        return (self.x, self.y)

    def __setstate__(self, state):
        self.x, self.y = state


def main(rank, world_size):
    p = pickle.loads(pickle.dumps(Point(rank, 5)))
    return p.x, p.y
