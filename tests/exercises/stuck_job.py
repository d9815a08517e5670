"""A job of four workers that hangs because of one of them, recorded by `record_stacks` under torchrun."""

import faulthandler
import os
import queue
import signal
import sys
import threading
import time

import torch
import torch.distributed as dist

batches = queue.Queue(maxsize=2)


def read_batches():
    while True:
        batches.put(torch.ones(4))


def wait_for_disk():
    time.sleep(600)


def next_batch(broken):
    if broken:
        wait_for_disk()
    return batches.get()


def average(tensors, group=None):
    for tensor in tensors:
        dist.all_reduce(tensor, group=group)


def clip(gradient, group):
    norm = gradient.square().sum()
    dist.all_reduce(norm, group=group)
    return gradient / norm.sqrt()


def pass_on(x, rank):
    if rank:
        dist.recv(x, src=rank - 1)
    if rank + 1 < dist.get_world_size():
        dist.send(x, dst=rank + 1)


def evaluate(x, group):
    average([x.mean()], group)


def train(what, odd, rank):
    norms, means = dist.new_group(), dist.new_group()
    x = next_batch(odd and what == "loader")
    if what == "objects" and not odd:
        dist.broadcast_object_list([None], src=3)
    if what == "chain" and rank < 2:
        x = next_batch(odd)
        pass_on(x, rank)
    if odd and what == "recv":
        dist.recv(x, src=0)
    if odd and what in ("evaluate", "group"):
        evaluate(x, means) if what == "evaluate" else average([x], means)
    if not (odd and what in ("clip", "barrier")):
        average([x])
    if not (odd and what == "barrier"):
        clip(x, norms)
    dist.barrier()


def main(what, culprit):
    rank = int(os.environ["RANK"])
    odd = rank == culprit
    if odd and what == "rendezvous":
        wait_for_disk()
    dist.init_process_group("gloo")
    threading.Thread(target=read_batches, daemon=True).start()
    if what == "save":
        if odd:
            wait_for_disk()
        dist.barrier()
    train(what, odd, rank)


with open(f"{os.environ['RANK']}.stacks", "w", encoding="utf-8") as file:
    faulthandler.register(signal.SIGUSR1, file=file)
    main(sys.argv[1], int(sys.argv[2]))
