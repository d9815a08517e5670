"""A manager's dictionary that two children write into."""

import multiprocessing


def note(shared, i):
    shared[i] = i * 10


def main(rank, world_size):
    context = multiprocessing.get_context("fork")
    with context.Manager() as manager:
        shared = manager.dict()
        children = [context.Process(target=note, args=(shared, i)) for i in range(2)]
        for child in children:
            child.start()
        for child in children:
            child.join()
        return sorted(shared.items())
