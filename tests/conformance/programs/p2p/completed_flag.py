"""A received message: wait returns, and the buffer holds it then."""

import torch
import torch.distributed as dist


def main(rank, world_size):
    x = torch.full((3,), -1.0)
    if rank == 0:
        work = dist.irecv(x, src=1)
        dist.barrier()
        work.wait()
    else:
        work = dist.isend(torch.arange(3.0), dst=0)
        dist.barrier()
        work.wait()
    return x
