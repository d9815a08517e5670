"""hash() of a text differs between processes under torchrun."""

import torch.distributed as dist

LIKE = "torchrun"
DIFFERS = {
    "untraced": ([1, 1], "an interpreter draws its hash seed as it starts; forked ranks share one"),
    "launch": ([1, 1], "an interpreter draws its hash seed as it starts; forked ranks share one"),
    "ranks": ([1, 1], "an interpreter draws its hash seed as it starts; forked ranks share one"),
}


def main(rank, world_size):
    seen = [None] * world_size
    dist.all_gather_object(seen, hash("the same text"))
    return len(set(seen))
