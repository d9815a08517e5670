"""The module level makes a ContextVar and pools, which the function uses."""

from concurrent.futures import ThreadPoolExecutor
from contextvars import ContextVar

level = ContextVar("level", default=1)
name = ContextVar("name")
name.set("of the module")
pool = ThreadPoolExecutor(2)


def main(rank, world_size):
    before = level.get(), name.get()
    level.set(rank + 10)
    return before, level.get(), list(pool.map(abs, [-1, -rank]))
