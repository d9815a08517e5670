"""A rank kills itself while the other waits for its message."""

import os
import signal

import torch
import torch.distributed as dist

FAILS = "SIGKILL"


def main(rank, world_size):
    if rank == 0:
        os.kill(os.getpid(), signal.SIGKILL)
    dist.recv(torch.zeros(1), src=0)
