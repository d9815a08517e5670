"""A true deadlock while a daemon thread of each rank beats every fifth of a second."""

import threading
import time

import torch
import torch.distributed as dist

FAILS = "hang"


def beat():
    while True:
        time.sleep(0.2)


def main(rank, world_size):
    threading.Thread(target=beat, daemon=True).start()
    x = torch.zeros(1)
    dist.recv(x, src=1 - rank)
