"""An object lives on rank 1; rank 0 holds a reference to it and calls it."""

import os

import torch.distributed.rpc as rpc

INIT = False


class Counter:
    def __init__(self, start):
        self.count = start

    def add(self, n):
        self.count += n
        return self.count


def main(rank, world_size):
    os.environ["MASTER_ADDR"] = "127.0.0.1"
    os.environ.setdefault("MASTER_PORT", "29513")
    rpc.init_rpc(f"worker{rank}", rank=rank, world_size=world_size)
    got = None
    if rank == 0:
        counter = rpc.remote("worker1", Counter, args=(10,))
        got = [counter.rpc_sync().add(1), counter.rpc_sync().add(5)]
    rpc.shutdown()
    return got
