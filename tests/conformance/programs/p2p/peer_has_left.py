"""Rank 0 destroys its group and works on: rank 1, which receives from it, catches the kind of error."""

import time

import torch
import torch.distributed as dist


def main(rank, world_size):
    if rank == 0:
        dist.destroy_process_group()
        time.sleep(3)
        return "done"
    try:
        dist.recv(torch.zeros(1), src=0)
    except Exception as error:
        return type(error).__name__
