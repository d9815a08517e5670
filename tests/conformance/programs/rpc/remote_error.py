"""An error in a remote call comes back to the caller."""

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
