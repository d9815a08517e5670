"""Functions that explorers run on ranks. This file imports no other module of the explorers."""

from __future__ import annotations

import functools
from time import sleep
from typing import Any

import torch
import torch.distributed as dist
from torch.distributed import distributed_c10d

from helpers.ranks.rank_context import span

DELAY_S = 0.05

Tensors = list[torch.Tensor]


def run_collectives(
    rank: int, world_size: int, calls: list[tuple[str, int, str]]
) -> list[tuple[list[list[int]], list[list[int]]]]:
    """Run each call (op, root, reduction). Return the tensors before and after it, as whole numbers."""
    pairs = (_run_collective(rank, world_size, *call) for call in calls)
    return [tuple([one.int().tolist() for one in side] for side in pair) for pair in pairs]  # type: ignore[misc]


def _run_collective(
    rank: int, world_size: int, op: str, root: int, reduction: str
) -> tuple[Tensors, Tensors]:
    """Run one collective on two numbers, or on one number for each rank. Return (before, after)."""
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


_WRAPPED_CALLS = (
    *(
        "send",
        "recv",
        "isend",
        "irecv",
        "broadcast",
        "reduce",
        "all_reduce",
        "gather",
        "all_gather",
    ),
    *(
        "scatter",
        "reduce_scatter",
        "all_to_all",
        "all_to_all_single",
        "barrier",
        "broadcast_object_list",
    ),
    *("all_gather_into_tensor", "reduce_scatter_tensor", "all_gather_object", "gather_object"),
)


class DroppedWork:
    """The Work of a dropped call, with nothing to wait for."""

    def wait(self, timeout: object = None) -> bool:
        return True

    def is_completed(self) -> bool:
        return True


def run_with_faults(
    rank: int,
    world_size: int,
    fn: Any,
    late_rank: int,
    dropped_call: tuple[int, int],
    slow_rank: int,
    *args: Any,
) -> list[str]:
    """Call `fn` with one rank delayed, one call left out, or all messages to one rank slowed down.

    A delay is recorded as a span, so that the picture shows it.

    Args:
        late_rank, slow_rank: A rank, or -1 for none.
        dropped_call: (rank, number of its call), or (-1, -1).

    Returns:
        The name of each call.
    """
    call_names: list[str] = []
    inside = [False]

    def wrap(name: str, original: Any) -> Any:
        @functools.wraps(original)
        def call(*call_args: Any, **call_kwargs: Any) -> Any:
            if inside[0]:  # torch makes this call inside one of the learner's calls.
                return original(*call_args, **call_kwargs)
            peer = next(
                (call_kwargs[key] for key in ("dst", "group_dst") if key in call_kwargs), None
            )
            peer = call_args[1] if peer is None and "send" in name and len(call_args) > 1 else peer
            call_names.append(f"{name}→{peer}" if "send" in name else name)
            if (rank, len(call_names) - 1) == dropped_call:
                later = name in ("isend", "irecv") or call_kwargs.get("async_op")
                return DroppedWork() if later else None
            if "send" in name and peer == slow_rank:
                with span("slow link"):
                    sleep(DELAY_S)
            inside[0] = True
            try:
                return original(*call_args, **call_kwargs)
            finally:
                inside[0] = False

        return call

    for name in _WRAPPED_CALLS:
        changed = wrap(name, getattr(dist, name))
        # P2POp compares its function with the functions of distributed_c10d
        for module in (dist, distributed_c10d):
            setattr(module, name, changed)
    if rank == late_rank:
        with span("late"):
            sleep(DELAY_S)
    fn(rank, world_size, *args)
    return call_names
