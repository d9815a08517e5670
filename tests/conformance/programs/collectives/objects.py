"""Objects: all_gather_object, gather_object, broadcast_object_list, scatter_object_list."""

import torch.distributed as dist

WORLD_SIZE = 3


def main(rank, world_size):
    every = [None] * world_size
    dist.all_gather_object(every, {"rank": rank, "name": "abc"[rank]})
    at_two = [None] * world_size if rank == 2 else None
    dist.gather_object((rank, [rank] * rank), at_two, dst=2)
    said = ["first", {1, 2}] if rank == 0 else [None, None]
    dist.broadcast_object_list(said, src=0)
    mine = [None]
    dist.scatter_object_list(mine, [10, "eleven", (12,)] if rank == 0 else None, src=0)
    return every, at_two, said, mine
