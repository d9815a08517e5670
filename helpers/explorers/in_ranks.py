"""What explorers run on ranks: nothing else of them is imported there."""

from __future__ import annotations

import torch
import torch.distributed as dist

Tensors = list[torch.Tensor]


def collectives(
    rank: int, world_size: int, calls: list[tuple[str, int, str]]
) -> list[tuple[list[list[int]], list[list[int]]]]:
    """Take part in each (op, root, reduction); return what was there before and after, as whole numbers."""
    pairs = (_collective(rank, world_size, *call) for call in calls)
    return [tuple([one.int().tolist() for one in side] for side in pair) for pair in pairs]  # type: ignore[misc]


def _collective(
    rank: int, world_size: int, op: str, root: int, reduction: str
) -> tuple[Tensors, Tensors]:
    """Take part in one collective with one or two numbers of each rank's own for every other rank."""
    mine = torch.tensor([10.0 * rank + 1, 10.0 * rank + 2])
    many = [torch.tensor([10.0 * rank + other]) for other in range(world_size)]
    room, own = [torch.zeros(2) for _ in range(world_size)], torch.zeros(1)
    how, at_root = getattr(dist.ReduceOp, reduction), rank == root
    before = [mine.clone()]
    if op == "broadcast":
        dist.broadcast(mine, root)
        return before, [mine]
    if op == "reduce":
        dist.reduce(mine, root, how)
        return before, [mine] if at_root else []
    if op == "all_reduce":
        dist.all_reduce(mine, how)
        return before, [mine]
    if op == "gather":
        dist.gather(mine, room if at_root else None, root)
        return before, room if at_root else []
    if op == "all_gather":
        dist.all_gather(room, mine)
        return before, room
    if op == "scatter":
        dist.scatter(own, many if at_root else None, root)
        return many if at_root else [], [own]
    if op == "reduce_scatter":
        dist.reduce_scatter(own, many, how)
        return many, [own]
    got = [torch.zeros(1) for _ in range(world_size)]
    dist.all_to_all(got, many)
    return many, got
