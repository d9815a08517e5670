"""Asynchronous calls: a halo exchange with isend and irecv, a reduction that overlaps with work."""

import torch
import torch.distributed as dist

dist.init_process_group("gloo")
rank, world_size = dist.get_rank(), dist.get_world_size()
left, right = (rank - 1) % world_size, (rank + 1) % world_size
field = torch.arange(6.0) + 10 * rank
settings = torch.tensor([0.25]) if rank == 0 else torch.zeros(1)
dist.broadcast(settings, src=0)
for step in range(4):
    from_left, from_right = torch.empty(1), torch.empty(1)
    outgoing = torch.stack([field[0], field[-1]])
    works = [
        dist.isend(outgoing[1:], right, tag=1),
        dist.irecv(from_left, left, tag=1),
        dist.isend(outgoing[:1], left, tag=2),
        dist.irecv(from_right, right, tag=2),
    ]
    energy = field.square().sum()
    summing = dist.all_reduce(energy, async_op=True)
    inner = field[1:-1] + settings * (field[2:] - 2 * field[1:-1] + field[:-2])
    for work in works:
        work.wait()
    first = field[:1] + settings * (field[1:2] - 2 * field[:1] + from_left)
    last = field[-1:] + settings * (from_right - 2 * field[-1:] + field[-2:-1])
    field = torch.cat([first, inner, last])
    summing.wait()
    if rank == 0:
        print(f"step {step}: energy {energy.item():.3f}")
print(f"rank {rank}: {field.sum().item():.3f}")
dist.destroy_process_group()
