"""Ranks leave notes for each other in the group's own store."""

from torch.distributed.distributed_c10d import _get_default_store

WORLD_SIZE = 3


def main(rank, world_size):
    store = _get_default_store()
    store.set(f"note {rank}", "x" * rank)
    left = (rank - 1) % world_size
    return store.get(f"note {left}").decode()
