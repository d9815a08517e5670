"""A variable that one rank sets is its own."""

import os

import torch.distributed as dist


def main(rank, world_size):
    os.environ[f"MINE_{rank}"] = "set"
    dist.barrier()
    return sorted(name for name in os.environ if name.startswith("MINE_")), os.getenv("NOT_THERE")
