"""The setup function of every tutorial: address and port by hand, then init and cleanup."""

import os

import torch
import torch.distributed as dist

INIT = False


def setup(rank, world_size):
    os.environ["MASTER_ADDR"] = "localhost"
    os.environ["MASTER_PORT"] = "12355"
    dist.init_process_group("gloo", rank=rank, world_size=world_size)


def cleanup():
    dist.destroy_process_group()


def main(rank, world_size):
    setup(rank, world_size)
    x = torch.full((2,), float(rank))
    dist.all_reduce(x)
    cleanup()
    return x, dist.is_initialized()
