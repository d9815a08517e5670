"""Heat on a rod that is cut into parts: edges are exchanged at each step."""

import torch
import torch.distributed as dist

WORLD_SIZE = 3


def main(rank, world_size):
    u = torch.zeros(6)
    if rank == 0:
        u[1] = 100.0
    for _ in range(20):
        works = []
        for peer, give, take in ((rank - 1, 1, 0), (rank + 1, -2, -1)):
            if 0 <= peer < world_size:
                works.append(dist.isend(u[give : give + 1 or None].clone(), dst=peer))
                works.append(dist.irecv(u[take : take + 1 or None], src=peer))
        for work in works:
            work.wait()
        u[1:-1] += 0.25 * (u[:-2] - 2 * u[1:-1] + u[2:])
    return [round(x, 4) for x in u[1:-1].tolist()]
