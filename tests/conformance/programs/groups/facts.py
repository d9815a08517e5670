"""What a rank can ask about its group."""

import torch.distributed as dist

WORLD_SIZE = 3


def main(rank, world_size):
    return (
        dist.is_available(),
        dist.is_initialized(),
        dist.get_backend(),
        dist.get_rank() == rank,
        dist.get_world_size(),
        dist.is_gloo_available(),
        dist.get_process_group_ranks(dist.group.WORLD),
    )
