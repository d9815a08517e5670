"""Cases of the exercises of notebook 03, and what their traffic must be: who sends what to whom, when."""

from __future__ import annotations

import random
from collections.abc import Iterator

import torch

from helpers.exercises.draws import describe, tensor, tensors
from helpers.exercises.look_at_rod import jacobi
from helpers.exercises.look_at_transfers import two_buffers
from helpers.exercises.model import Case
from helpers.exercises.slow_receiver import FILL
from helpers.trace.events import Trace
from helpers.trace.mismatch import at

_TIMEOUT_S = 6.0
"""A transfer that is never waited for can end in a wait that nothing ends."""


def swap(rng: random.Random) -> Iterator[Case]:
    sizes = (
        (2, 3, torch.float32),
        (3, 1, torch.int64),
        (4, 1000, torch.float64),
        (5, 2, torch.float32),
    )
    for world_size, length, dtype in sizes:
        mine = tensors(rng, world_size, length, dtype=dtype)
        yield Case(
            describe(world_size, [length], dtype),
            world_size,
            [(x,) for x in mine],
            mine[::-1],
            timeout_s=_TIMEOUT_S,
        )


def mirror(case: Case, rank: int) -> tuple[int, ...]:
    partner = case.world_size - 1 - rank
    return () if partner == rank else (partner,)


def has_mirror(case: Case, rank: int) -> int:
    return len(mirror(case, rank))


def safe_buffers(rng: random.Random) -> Iterator[Case]:
    for world_size, dst, count, length in (
        (2, 1, 4, 3),
        (3, 0, 3, 2),
        (2, 0, 1, 4),
        (3, 1, 7, 1),
    ):
        table = {r: tensor(rng, count, length) + 30 * r for r in range(world_size) if r != dst}
        blank = torch.zeros(count, length)
        plural = "s" * (count > 1)
        yield Case(
            f"{world_size} ranks, {count} message{plural} of {length} to rank {dst}",
            world_size,
            [(dst, table.get(rank, blank)) for rank in range(world_size)],
            [table if rank == dst else two_buffers for rank in range(world_size)],
            timeout_s=_TIMEOUT_S,
        )


def messages(case: Case, rank: int) -> int:
    dst, messages = case.inputs[rank]
    return len(messages) if rank != dst else 0


def fills_in_flight(trace: Trace, case: Case) -> str:
    for rank in range(case.world_size):
        if rank == case.inputs[rank][0]:
            continue
        sends = [event for event in trace.of(rank) if event.op == "send"]
        fills = {e.call: e for e in trace.of(rank) if e.op == "span"}
        for index, send in enumerate(sends[: len(case.inputs[rank][1]) - 1]):
            fill = fills.get(f"{FILL} {index + 1}")
            if fill is None:
                return f"rank {rank} never fills message {index + 1}."
            if send.start_ns > fill.start_ns:
                return (
                    f"rank {rank} fills message {index + 1} before it has issued message {index}; "
                    "issue each message as soon as its buffer is full."
                )
            if send.wait_ns is not None and send.wait_ns < (fill.end_ns or fill.start_ns):
                return (
                    f"rank {rank} waits for message {index}{at(send)} before it fills message "
                    f"{index + 1}, so it idles; fill the other buffer while that message is in flight."
                )
    return ""


def halo_exchange(rng: random.Random) -> Iterator[Case]:
    worlds = (
        ((4, 3), 1, torch.float64),
        ((3, 1, 5), 4, torch.float64),
        ((2, 4, 1, 1), 7, torch.float32),
        ((6,), 3, torch.float64),
    )
    for sizes, sweeps, dtype in worlds:
        left, right = float(rng.randrange(60, 99)), float(rng.randrange(-40, -9))
        rod = tensor(rng, sum(sizes), dtype=dtype)
        world_size, cells = len(sizes), ", ".join(map(str, sizes))
        plural = "s" * (sweeps > 1)
        dtype_text = "" if dtype == torch.float64 else ", float32"
        yield Case(
            f"{world_size} rank{'s' * (world_size > 1)} with {cells} cells, {sweeps} sweep{plural}"
            f"{dtype_text}",
            world_size,
            [(block, left, right, sweeps) for block in rod.split(sizes)],
            list(jacobi(rod, left, right, sweeps).split(sizes)),
            timeout_s=_TIMEOUT_S,
        )


def neighbours(case: Case, rank: int) -> tuple[int, ...]:
    return tuple(r for r in (rank - 1, rank + 1) if 0 <= r < case.world_size)


def edges(case: Case, rank: int) -> int:
    sweeps: int = case.inputs[rank][3]
    return sweeps * len(neighbours(case, rank))


def in_one_sweep(case: Case, rank: int) -> int:
    return 2 * len(neighbours(case, rank))


def one_cell_each(trace: Trace, case: Case) -> str:
    for event in trace.calls:
        size = case.inputs[event.rank][0].element_size()
        if event.op == "send" and event.nbytes != size:
            return (
                f"rank {event.rank} sends {event.nbytes} bytes{at(event)}; one cell of this dtype has "
                f"{size}, and a neighbour needs one cell."
            )
    return ""


def shift_with_batch(rng: random.Random) -> Iterator[Case]:
    sizes = (
        (2, 1, 3, torch.float32),
        (3, -1, 1, torch.int64),
        (5, 7, 2, torch.float64),
        (3, -3, 4, torch.float32),
    )
    for world_size, by, length, dtype in sizes:
        mine = tensors(rng, world_size, length, dtype=dtype)
        yield Case(
            f"{describe(world_size, [length], dtype)}, by {by}",
            world_size,
            [(x, by) for x in mine],
            [mine[(rank - by) % world_size] for rank in range(world_size)],
            timeout_s=_TIMEOUT_S,
        )


def moves(case: Case, rank: int) -> int:
    return int(case.inputs[rank][1] % case.world_size != 0)


def target(case: Case, rank: int) -> tuple[int, ...]:
    return ((rank + case.inputs[rank][1]) % case.world_size,)


def batched(trace: Trace, case: Case) -> str:
    for event in trace.calls:
        if event.call != "batch_isend_irecv":
            return (
                f"rank {event.rank} calls {event.call}{at(event)}; hand both transfers to one "
                "batch_isend_irecv instead."
            )
    for rank in range(case.world_size):
        calls = [event for event in trace.of(rank) if event.op in {"send", "recv"}]
        if len(calls) == 2 and calls[0].where != calls[1].where:
            return f"rank {rank} calls batch_isend_irecv twice; one call takes both transfers."
    return ""


def overlap(rng: random.Random) -> Iterator[Case]:
    for world_size, length, dtype in (
        (2, 3, torch.float32),
        (3, 1, torch.int64),
        (4, 5, torch.float64),
    ):
        mine = tensors(rng, world_size, length, dtype=dtype)
        results = [tensor(rng, length, dtype=dtype) * 100 for _ in range(world_size)]
        yield Case(
            describe(world_size, [length], dtype),
            world_size,
            list(zip(mine, results, strict=True)),
            [result + mine[rank - 1] for rank, result in enumerate(results)],
            timeout_s=_TIMEOUT_S,
        )


def next_rank(case: Case, rank: int) -> tuple[int, ...]:
    return ((rank + 1) % case.world_size,)
