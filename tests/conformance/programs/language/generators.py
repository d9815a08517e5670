"""Generators with send, close and yield from."""


def inner():
    got = yield 1
    yield got * 2


def outer():
    yield from inner()
    yield "end"


def main(rank, world_size):
    g = outer()
    return next(g), g.send(10), next(g), list(g)
