"""A weak reference dies with its object; a finalizer runs."""

import gc
import weakref


class Thing:
    pass


def main(rank, world_size):
    said = []
    thing = Thing()
    reference = weakref.ref(thing)
    weakref.finalize(thing, said.append, "gone")
    alive = reference() is thing
    del thing
    gc.collect()
    return alive, reference() is None, said
