"""An alarm that nobody handles ends the rank while it waits in a receive."""

import signal

import torch
import torch.distributed as dist

FAILS = "SIGALRM"


def main(rank, world_size):
    if rank == 1:
        import time

        time.sleep(20)
    signal.alarm(1)
    dist.recv(torch.zeros(1), src=1)
