"""A function of the cell runs on the other rank."""

import os

import torch.distributed.rpc as rpc

LIKE = "torchrun"
INIT = False


def who(greeting):
    return f"{greeting} from {os.environ['RANK']}"


def main(rank, world_size):
    rpc.init_rpc(f"worker{rank}", rank=rank, world_size=world_size)
    futures = [rpc.rpc_async(f"worker{i}", who, args=("hello",)) for i in range(world_size)]
    answers = [future.wait() for future in futures]
    rpc.shutdown()
    return answers
