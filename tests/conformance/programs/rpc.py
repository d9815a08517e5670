# %% call | A remote call and its answer; all ranks leave by shutdown.
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


# %% futures | Many calls at once; their answers are collected.
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


# %% own_function | A function of the cell runs on the other rank.
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


# %% remote_error | An error in a remote call is raised in the caller.
import os

import torch.distributed.rpc as rpc

INIT = False


def divide(a, b):
    return a / b


def main(rank, world_size):
    os.environ["MASTER_ADDR"] = "127.0.0.1"
    os.environ.setdefault("MASTER_PORT", "29512")
    rpc.init_rpc(f"worker{rank}", rank=rank, world_size=world_size)
    said = ""
    if rank == 0:
        try:
            rpc.rpc_sync("worker1", divide, args=(1, 0))
        except (ZeroDivisionError, RuntimeError) as error:
            said = "ZeroDivisionError" in repr(error)
    rpc.shutdown()
    return said


# %% remote_reference | An object lives on rank 1; rank 0 holds a reference to it and calls it.
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
