"""A cycle of objects is collected."""

import gc


class Node:
    count = 0

    def __init__(self):
        self.me = self
        Node.count += 1

    def __del__(self):
        Node.count -= 1


def main(rank, world_size):
    for _ in range(10):
        Node()
    gc.collect()
    return Node.count, gc.isenabled()
