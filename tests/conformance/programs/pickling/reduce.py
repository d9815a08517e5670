"""A class with __reduce__ of its own."""

import pickle


class Pair:
    def __init__(self, a, b):
        self.a, self.b = a, b

    def __reduce__(self):
        return Pair, (self.b, self.a)


def main(rank, world_size):
    pair = pickle.loads(pickle.dumps(Pair(1, 2)))
    return pair.a, pair.b
