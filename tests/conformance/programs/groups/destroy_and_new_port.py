"""Leave the group and join again at another port, which rank 0 finds."""

import os
import socket

import torch
import torch.distributed as dist


def main(rank, world_size):
    port = [None]
    if rank == 0:
        with socket.socket() as s:
            s.bind(("127.0.0.1", 0))
            port = [s.getsockname()[1]]
    dist.broadcast_object_list(port, src=0)
    dist.destroy_process_group()
    os.environ["MASTER_ADDR"], os.environ["MASTER_PORT"] = "127.0.0.1", str(port[0])
    dist.init_process_group("gloo", rank=rank, world_size=world_size)
    x = torch.tensor([1 + rank])
    dist.all_reduce(x)
    return x
