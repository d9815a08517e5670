"""A child process answers by a pipe after a second and a half."""

import multiprocessing
import time

import torch.distributed as dist


def answer(end):
    time.sleep(1.5)
    end.send("at last")


def main(rank, world_size):
    got = None
    if rank == 0:
        context = multiprocessing.get_context("fork")
        mine, other = context.Pipe()
        child = context.Process(target=answer, args=(other,))
        child.start()
        got = mine.recv()
        child.join()
    dist.barrier()
    return got
