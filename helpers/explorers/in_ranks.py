"""What explorers run on ranks: nothing else of them is imported there."""

from __future__ import annotations

import torch
import torch.distributed as dist

Numbers = torch.Tensor | list[torch.Tensor] | None


def collective(
    rank: int, world_size: int, op: str, root: int, reduction: str
) -> tuple[Numbers, Numbers]:
    """Take part in one collective, two numbers of each rank's own; give what was there before and after."""
    mine = torch.tensor([10.0 * rank + 1, 10.0 * rank + 2])
    many = [torch.tensor([10.0 * rank + other]) for other in range(world_size)]
    room = [torch.zeros(2) for _ in range(world_size)]
    how = getattr(dist.ReduceOp, reduction)
    before: Numbers = mine.clone()
    if op == "broadcast":
        dist.broadcast(mine, root)
    elif op == "reduce":
        dist.reduce(mine, root, how)
        return before, mine if rank == root else None
    elif op == "all_reduce":
        dist.all_reduce(mine, how)
    elif op == "gather":
        dist.gather(mine, room if rank == root else None, root)
        return before, room if rank == root else None
    elif op == "all_gather":
        dist.all_gather(room, mine)
        return before, room
    elif op == "scatter":
        own = torch.zeros(1)
        dist.scatter(own, many if rank == root else None, root)
        return many if rank == root else None, own
    elif op == "reduce_scatter":
        own = torch.zeros(1)
        dist.reduce_scatter(own, many, how)
        return many, own
    else:
        got = [torch.zeros(1) for _ in range(world_size)]
        if op == "all_to_all":
            dist.all_to_all(got, many)
        return many, got
    return before, mine
