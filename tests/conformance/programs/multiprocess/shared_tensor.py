"""A tensor in shared memory that a child changes."""

import torch
import torch.multiprocessing as mp


def fill(x):
    x.fill_(7.0)


def main(rank, world_size):
    x = torch.zeros(3).share_memory_()
    child = mp.get_context("fork").Process(target=fill, args=(x,))
    child.start()
    child.join()
    return x
