"""Context variables at the top: one set, one with a default, one without."""

import contextvars

PLAIN = contextvars.ContextVar("plain")
GIVEN = contextvars.ContextVar("given", default=1)
CHANGED = contextvars.ContextVar("changed", default=1)
CHANGED.set(2)


def main(rank, world_size):
    token = GIVEN.set(rank)
    seen = GIVEN.get(), CHANGED.get(), PLAIN.get("none")
    GIVEN.reset(token)
    return seen, GIVEN.get()
