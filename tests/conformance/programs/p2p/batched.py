"""batch_isend_irecv exchanges with both neighbors at once."""

import torch
import torch.distributed as dist

WORLD_SIZE = 4


def main(rank, world_size):
    left, right = (rank - 1) % world_size, (rank + 1) % world_size
    from_left, from_right = torch.zeros(2), torch.zeros(2)
    mine = torch.tensor([rank, rank + 0.5])
    operations = [
        dist.P2POp(dist.isend, mine, right, tag=1),
        dist.P2POp(dist.isend, mine, left, tag=2),
        dist.P2POp(dist.irecv, from_left, left, tag=1),
        dist.P2POp(dist.irecv, from_right, right, tag=2),
    ]
    for work in dist.batch_isend_irecv(operations):
        work.wait()
    return from_left, from_right
