"""Many calls at once; their answers are collected."""

import os

import torch
import torch.distributed.rpc as rpc

INIT = False
WORLD_SIZE = 3


def main(rank, world_size):
    os.environ["MASTER_ADDR"] = "127.0.0.1"
    os.environ.setdefault("MASTER_PORT", "29514")
    rpc.init_rpc(f"worker{rank}", rank=rank, world_size=world_size)
    got = None
    if rank == 0:
        calls = [rpc.rpc_async(1 + i % 2, torch.mul, args=(torch.ones(1), i)) for i in range(6)]
        got = torch.cat(torch.futures.wait_all(calls))
    rpc.shutdown()
    return got
