"""Messages with tags are received in another order than they were sent."""

import torch
import torch.distributed as dist


def main(rank, world_size):
    if rank == 0:
        requests = [dist.isend(torch.tensor([tag * 10]), dst=1, tag=tag) for tag in (1, 2, 3)]
        for request in requests:
            request.wait()
        return None
    got = []
    for tag in (3, 1, 2):
        x = torch.zeros(1, dtype=torch.int64)
        dist.recv(x, src=0, tag=tag)
        got.append(x.item())
    return got
