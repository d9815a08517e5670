"""functools: singledispatch, partial, reduce, cached_property."""

import functools
import operator


@functools.singledispatch
def kind(x):
    return "something"


@kind.register
def _(x: int):
    return "number"


class Lazy:
    @functools.cached_property
    def value(self):
        return [1]


def main(rank, world_size):
    lazy = Lazy()
    add = functools.partial(operator.add, 10)
    total = functools.reduce(operator.mul, [1, 2, 3], 1)
    return kind(3), kind("x"), add(rank), total, lazy.value is lazy.value
