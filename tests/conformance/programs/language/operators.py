"""A class with operators, __getattr__, __call__ and __len__."""


class Vector:
    def __init__(self, *xs):
        self.xs = xs

    def __add__(self, other):
        return Vector(*[a + b for a, b in zip(self.xs, other.xs, strict=True)])

    def __getattr__(self, name):
        if name.startswith("x"):
            return self.xs[int(name[1:])]
        raise AttributeError(name)

    def __call__(self, f):
        return Vector(*map(f, self.xs))

    def __len__(self):
        return len(self.xs)


def main(rank, world_size):
    v = (Vector(1, 2) + Vector(rank, 10))(lambda x: x * 2)
    return v.x0, v.x1, len(v)
