"""compare_set writes only where the value is as expected: one rank wins."""

import torch.distributed as dist

WORLD_SIZE = 3


def main(rank, world_size):
    store = dist.distributed_c10d._get_default_store()
    won = store.compare_set("leader", "", f"rank {rank}")
    dist.barrier()
    leaders = [None] * world_size
    dist.all_gather_object(leaders, won.decode())
    return len(set(leaders))
