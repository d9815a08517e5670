"""Rank 0 keeps a TCPStore; the others read what it wrote and count."""

import torch.distributed as dist

WORLD_SIZE = 3


def main(rank, world_size):
    port = [None]
    if rank == 0:
        store = dist.TCPStore("127.0.0.1", 0, world_size, is_master=True, wait_for_workers=False)
        port[0] = store.port
    dist.broadcast_object_list(port, src=0)
    if rank != 0:
        store = dist.TCPStore("127.0.0.1", port[0], world_size, is_master=False)
    if rank == 0:
        store.set("color", "green")
    got = store.get("color")
    store.add("seen", 1)
    dist.barrier()
    total = store.add("seen", 0)
    dist.barrier()
    return got, total
