"""A remote call and its answer; all leave by shutdown."""

import os

import torch
import torch.distributed.rpc as rpc

INIT = False


def main(rank, world_size):
    os.environ["MASTER_ADDR"] = "127.0.0.1"
    os.environ.setdefault("MASTER_PORT", "29511")
    rpc.init_rpc(f"worker{rank}", rank=rank, world_size=world_size)
    got = None
    if rank == 0:
        got = rpc.rpc_sync("worker1", torch.add, args=(torch.ones(2), 3))
    rpc.shutdown()
    return got
