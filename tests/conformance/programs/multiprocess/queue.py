"""A child process puts tensors' values into a queue."""

import multiprocessing

import torch


def work(queue, rank):
    queue.put(torch.arange(3).mul(rank + 1).tolist())


def main(rank, world_size):
    context = multiprocessing.get_context("fork")
    queue = context.Queue()
    child = context.Process(target=work, args=(queue, rank))
    child.start()
    got = queue.get(timeout=20)
    child.join()
    return got, child.exitcode
