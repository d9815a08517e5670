"""Exercises of notebook 03: transfers that are issued first and waited for later."""

from __future__ import annotations

import random
from collections.abc import Iterator

import torch

from helpers.exercises.draws import describe, tensor, tensors
from helpers.exercises.look_at_rod import jacobi
from helpers.exercises.look_at_transfers import (
    look_at_buffers,
    look_at_halo,
    look_at_overlap,
    look_at_shift,
    look_at_swap,
    two_buffers,
)
from helpers.exercises.model import Case, Exercise, Kind
from helpers.exercises.rules import Count, Holds, OnlyCalls, Peers
from helpers.exercises.rules_transfers import (
    EachIsWaitedFor,
    InFlightTogether,
    NothingBlocks,
    SpanInFlight,
)
from helpers.exercises.slow_receiver import FILL
from helpers.trace.events import Trace
from helpers.trace.mismatch import at

NOTEBOOK = "03_nonblocking_p2p"

_STRICTLY = "helpers.exercises.strict_transfers:strictly"
_TRANSFERS = (OnlyCalls(("send", "recv")), NothingBlocks(), EachIsWaitedFor())
_TIMEOUT_S = 6.0
"""A transfer that is never waited for can end in a wait that nothing ends."""


def _swap(rng: random.Random) -> Iterator[Case]:
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


def _mirror(case: Case, rank: int) -> tuple[int, ...]:
    partner = case.world_size - 1 - rank
    return () if partner == rank else (partner,)


def _has_mirror(case: Case, rank: int) -> int:
    return len(_mirror(case, rank))


def _safe_buffers(rng: random.Random) -> Iterator[Case]:
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


def _messages(case: Case, rank: int) -> int:
    dst, messages = case.inputs[rank]
    return len(messages) if rank != dst else 0


def _fills_in_flight(trace: Trace, case: Case) -> str:
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


def _halo_exchange(rng: random.Random) -> Iterator[Case]:
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


def _neighbours(case: Case, rank: int) -> tuple[int, ...]:
    return tuple(r for r in (rank - 1, rank + 1) if 0 <= r < case.world_size)


def _edges(case: Case, rank: int) -> int:
    sweeps: int = case.inputs[rank][3]
    return sweeps * len(_neighbours(case, rank))


def _in_one_sweep(case: Case, rank: int) -> int:
    return 2 * len(_neighbours(case, rank))


def _one_cell_each(trace: Trace, case: Case) -> str:
    for event in trace.calls:
        size = case.inputs[event.rank][0].element_size()
        if event.op == "send" and event.nbytes != size:
            return (
                f"rank {event.rank} sends {event.nbytes} bytes{at(event)}; one cell of this dtype has "
                f"{size}, and a neighbour needs one cell."
            )
    return ""


def _shift_with_batch(rng: random.Random) -> Iterator[Case]:
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


def _moves(case: Case, rank: int) -> int:
    return int(case.inputs[rank][1] % case.world_size != 0)


def _target(case: Case, rank: int) -> tuple[int, ...]:
    return ((rank + case.inputs[rank][1]) % case.world_size,)


def _batched(trace: Trace, case: Case) -> str:
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


def _overlap(rng: random.Random) -> Iterator[Case]:
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


def _next_rank(case: Case, rank: int) -> tuple[int, ...]:
    return ((rank + 1) % case.world_size,)


EXERCISES = (
    Exercise(
        "swap",
        "3.1",
        "Swap",
        NOTEBOOK,
        Kind.MODULE,
        _swap,
        (
            "No rank has to go first any more: every rank can run the same lines. What must both "
            "ranks of a pair have done before either of them waits?",
            "Issue both transfers, then wait for both. The received tensor needs a place of its own "
            "(`torch.empty_like(x)`), because `x` is in flight. The rank in the middle has no partner.",
            "partner = world_size - 1 - rank; if partner == rank: return x; theirs = empty_like(x); "
            "works = [dist.isend(x, partner), dist.irecv(theirs, partner)]; wait for each work; "
            "return theirs.",
        ),
        minutes=5,
        difficulty=1,
        programme=_STRICTLY,
        rules=(
            *_TRANSFERS,
            Count("send", _has_mirror),
            Count("recv", _has_mirror),
            Peers(_mirror, "each rank sends to its partner"),
            InFlightTogether(2, "both transfers are in flight together"),
        ),
        look=look_at_swap,
    ),
    Exercise(
        "safe_buffers",
        "3.2",
        "Safe buffers",
        NOTEBOOK,
        Kind.MODULE,
        _safe_buffers,
        (
            "Message 2 goes into the buffer that message 0 came from. When may you fill it?",
            "Use the buffers in turn: message i goes into buffer `i % 2`. Keep the work of each "
            "message. Before you fill a buffer, wait for the message that was sent from it last.",
            "works = []; for i in range(count): if i >= 2: works[i - 2].wait(); fill(buffers[i % 2], "
            "i); works.append(dist.isend(buffers[i % 2], dst)). After the loop: for work in "
            "works[-2:]: work.wait().",
        ),
        minutes=15,
        difficulty=3,
        programme="helpers.exercises.slow_receiver:to_slow_receiver",
        rules=(
            OnlyCalls(("send", "recv")),
            Count("send", _messages),
            Holds(_fills_in_flight, "one buffer is filled while the other is in flight"),
            EachIsWaitedFor(),
        ),
        look=look_at_buffers,
    ),
    Exercise(
        "halo_exchange",
        "3.3",
        "Halo exchange",
        NOTEBOOK,
        Kind.MODULE,
        _halo_exchange,
        (
            "Which cells of its neighbours does a block need for one sweep? And what stands in their "
            "place at the two ends of the rod?",
            "In each sweep: two halo tensors of one cell, filled with `left` and `right` where there "
            "is no neighbour; an isend and an irecv for each neighbour; wait for all; then "
            "`torch.cat([west, block, east])` and one line of arithmetic.",
            "west, east = block.new_tensor([left]), block.new_tensor([right]); if rank > 0: isend "
            "block[:1], irecv west; if rank < world_size - 1: isend block[-1:], irecv east; wait for "
            "all; padded = cat([west, block, east]); block = (padded[:-2] + padded[2:]) / 2.",
        ),
        minutes=15,
        difficulty=3,
        programme=_STRICTLY,
        rules=(
            *_TRANSFERS,
            Holds(_one_cell_each, "one cell goes to each neighbour"),
            Count("send", _edges, why="That is one to each neighbour in each sweep."),
            Count("recv", _edges, why="That is one from each neighbour in each sweep."),
            Peers(_neighbours, "each rank sends to its neighbours"),
            InFlightTogether(_in_one_sweep, "all transfers of a sweep are in flight together"),
        ),
        look=look_at_halo,
    ),
    Exercise(
        "shift_with_batch",
        "3.4",
        "Shift with a batch",
        NOTEBOOK,
        Kind.MODULE,
        _shift_with_batch,
        (
            "Your tensor goes to the rank that is `by` further on. From which rank does yours come?",
            "A `dist.P2POp(dist.isend, x, peer)` describes a transfer without starting it. Put two "
            "into a list. When does a rank turn out to be its own target?",
            "if by % world_size == 0: return x; box = empty_like(x); ops = [P2POp(dist.isend, x, (rank "
            "+ by) % world_size), P2POp(dist.irecv, box, (rank - by) % world_size)]; for work in "
            "dist.batch_isend_irecv(ops): work.wait(); return box.",
        ),
        minutes=10,
        difficulty=2,
        programme=_STRICTLY,
        rules=(
            *_TRANSFERS,
            Count("send", _moves),
            Count("recv", _moves),
            Peers(_target, "each rank sends to the one that is `by` further on"),
            Holds(_batched, "one batch_isend_irecv takes both transfers"),
            InFlightTogether(2, "both transfers are in flight together"),
        ),
        look=look_at_shift,
        further=True,
    ),
    Exercise(
        "overlap",
        "3.5",
        "Overlap",
        NOTEBOOK,
        Kind.MODULE,
        _overlap,
        (
            "Three steps: issue, compute, wait. Which of them needs what the rank before sends?",
            "Only the sum at the end needs the received tensor. So call `compute()` after isend and "
            "irecv, and before the first wait.",
            "box = torch.empty_like(x); works = [isend x to the next rank, irecv box from the one "
            "before]; mine = compute(); for work in works: work.wait(); return mine + box.",
        ),
        minutes=10,
        difficulty=2,
        programme="helpers.exercises.strict_transfers:with_compute",
        rules=(
            *_TRANSFERS,
            Count("send", 1),
            Count("recv", 1),
            Peers(_next_rank, "each rank sends to the next"),
            SpanInFlight("compute"),
        ),
        look=look_at_overlap,
    ),
)
