"""A HashStore is one process's own."""

import torch.distributed as dist


def main(rank, world_size):
    store = dist.HashStore()
    store.set("a", "1")
    store.add("count", rank)
    store.add("count", 5)
    return store.get("a"), store.add("count", 0), store.num_keys(), store.delete_key("a")
