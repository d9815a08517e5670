"""Exercises of notebook 06: hangs, each with its repair."""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Iterator
from typing import Any

import torch

from helpers.checks.rules import Count, Holds, OnlyCalls
from helpers.exercises.draws import describe, tensor, tensors
from helpers.exercises.flight_dumps import Scenario, dumps_of
from helpers.exercises.look_at_hangs import (
    look_at_barrier,
    look_at_dumps,
    look_at_mismatch,
    look_at_missing,
    look_at_shapes,
    steps,
)
from helpers.exercises.model import Case, Exercise, Kind
from helpers.trace.events import Trace
from helpers.views.plain import plural

NOTEBOOK = "06_deadlocks"
_PROGRAMMES = "helpers.exercises.hang_programmes"
_PATIENCE_S, _SHORT_PATIENCE_S = 8.0, 0.8


# --- 6.1 -------------------------------------------------------------------------------------------


def _repair_mismatch(rng: random.Random) -> Iterator[Case]:
    worlds: tuple[tuple[tuple[float, ...], torch.dtype], ...] = (
        ((4.0, 1.0, 6.0), torch.float32),
        ((-12.0, -15.0), torch.float64),
        ((6.0, 9.0, 8.0, 5.0), torch.float32),
        ((4.0, 2.0, 2.0), torch.float32),
    )
    for losses, dtype in worlds:
        shift = rng.randrange(4)
        given = [torch.tensor([loss + shift], dtype=dtype) for loss in losses]
        best = losses.index(min(losses))
        weights = tensors(rng, len(losses), 300, dtype=dtype)
        mean = torch.cat(given).mean().item()
        tie = ", a tie" if losses.count(min(losses)) > 1 else ""
        yield Case(
            f"{describe(len(losses), [300], dtype)}, rank {best} is best{tie}",
            len(losses),
            list(zip(given, weights, strict=True)),
            [(weights[best], mean)] * len(losses),
        )


def _weights_by_broadcast(trace: Trace, case: Case) -> str:
    size = case.inputs[0][1].nbytes
    for event in trace.calls:
        if event.op != "broadcast" and event.nbytes >= size:
            return (
                f"rank {event.rank} hands its whole weights to {event.call}; the weights of one rank "
                "are wanted, and one broadcast carries them."
            )
    return ""


# --- 6.2 -------------------------------------------------------------------------------------------


def _repair_missing_rank(rng: random.Random) -> Iterator[Case]:
    worlds: tuple[tuple[tuple[int, ...], tuple[int, ...]], ...] = (
        ((2, 3), ()),
        ((3, 1, 2), ()),
        ((0, 2, 1, 4), ()),
        ((2, 1, 2, 1), (1, 3)),
    )
    for counts, absent in worlds:
        batches = [[tensor(rng, rng.randrange(2, 6)) for _ in range(n)] for n in counts]
        sums = [
            float(sum(mine[step].sum() for mine in batches if step < len(mine)))
            for step in range(max(counts))
        ]
        if absent:
            label = f"{len(counts)} ranks, of which {' and '.join(map(str, absent))} never come"
            others = [_names(absent), *[_anything] * (len(counts) - 1)]
            expected: list[Any] = ["absent" if r in absent else e for r, e in enumerate(others)]
        else:
            label = f"{len(counts)} ranks with {', '.join(map(str, counts))} batches"
            expected = [sums] * len(counts)
        patience = _SHORT_PATIENCE_S if absent else _PATIENCE_S
        inputs = [(mine, patience, list(absent)) for mine in batches]
        yield Case(label, len(counts), inputs, expected, timeout_s=20)


def _anything(value: Any) -> str:
    return ""


def _names(absent: tuple[int, ...]) -> Callable[[Any], str]:
    wanted = ", ".join(map(str, absent))

    def problem(value: Any) -> str:
        ranks = f"ranks {wanted}" if len(absent) > 1 else f"rank {wanted}"
        if not isinstance(value, str) or not value.startswith("raised:"):
            return f"{ranks} never came, and yet rank 0 returned"
        named = re.search(r"Ranks? ([\d, ]+) failed to pass monitoredBarrier in (\d+) ms", value)
        if named is None:
            return f"the error that rank 0 raised does not name {ranks}"
        if named[1].strip() != wanted:
            return f"rank {named[1]} is named, {ranks} are missing: `wait_all_ranks=True` names them all"
        if int(named[2]) != round(1000 * _SHORT_PATIENCE_S):
            return f"the roll call took {named[2]} ms: `patience` is {_SHORT_PATIENCE_S} s here"
        return ""

    return problem


# --- 6.3 -------------------------------------------------------------------------------------------


def _repair_shape_mismatch(rng: random.Random) -> Iterator[Case]:
    worlds: tuple[tuple[tuple[int, ...], torch.dtype], ...] = (
        ((3, 1), torch.float32),
        ((2, 5, 0), torch.float64),
        ((1, 4, 2, 3), torch.int64),
        ((4, 4, 4), torch.float32),
    )
    for lengths, dtype in worlds:
        parts = [tensor(rng, n, dtype=dtype) + 20 * r for r, n in enumerate(lengths)]
        name = "" if dtype == torch.float32 else f", {str(dtype).removeprefix('torch.')}"
        yield Case(
            f"{len(lengths)} ranks with {', '.join(map(str, lengths))} elements{name}",
            len(lengths),
            [(part,) for part in parts],
            [torch.cat(parts)] * len(lengths),
        )


def _no_pickles(trace: Trace, case: Case) -> str:
    for event in trace.calls:
        if event.call.endswith("_object"):
            return (
                f"rank {event.rank} calls {event.call}, which pickles its tensor; "
                "here tensors travel as they are, once their sizes agree."
            )
    return ""


# --- 6.4 -------------------------------------------------------------------------------------------


def _repair_rank0_only_barrier(rng: random.Random) -> Iterator[Case]:
    for world_size in (2, 3, 4):
        word = rng.choice(("digits", "letters", "faces"))
        content = f"{word} {rng.randrange(1000)}"
        name = f"{word}-{rng.randrange(1 << 30)}"
        yield Case(
            f"{world_size} ranks, {content!r}",
            world_size,
            [(name, content)] * world_size,
            [content] * world_size,
        )


def _prepared_once(trace: Trace, case: Case) -> str:
    prepared = [event.rank for event in trace.spans if event.call == "prepare"]
    if prepared != [0]:
        who = f"by ranks {', '.join(map(str, prepared))}" if prepared else "by no rank"
        return f"the data is prepared {who}; rank 0 alone prepares it, once."
    for rank in range(case.world_size):
        reads = sum(e.call == "read" for e in trace.spans.of(rank))
        if reads != 1:
            return f"rank {rank} reads {plural(reads, 'time')}; once is right."
    return ""


# --- 6.5 -------------------------------------------------------------------------------------------


def _who_hangs(rng: random.Random) -> Iterator[Case]:
    def some(world_size: int, count: int) -> tuple[int, ...]:
        return tuple(sorted(rng.sample(range(world_size), count)))

    def lost(world_size: int) -> list[int]:
        return [rng.randrange(4) for _ in range(world_size)]

    scenarios = (
        ("a rank is missing", Scenario(3, "missing", rng.randrange(3, 7), some(3, 1))),
        ("another op", Scenario(4, "op", 4, (2,), ahead=2, larger=[(2, 4), (1, 6)])),
        (
            "another size, and they go on",
            Scenario(5, "size", rng.randrange(2, 6), (0, rng.randrange(1, 5)), alone=2),
        ),
        ("nothing is wrong", Scenario(3, "none")),
        (
            "two missing, old entries are lost",
            Scenario(6, "missing", 5, (1, rng.randrange(2, 6)), lost(6), 3, larger=[(0, 7)]),
        ),
        (
            "old entries are lost",
            Scenario(4, "op", rng.randrange(6, 9), (0,), lost(4), alone=1),
        ),
        ("all but one are missing", Scenario(4, "missing", rng.randrange(3, 6), some(4, 3))),
    )
    for label, scenario in scenarios:
        dumps = dumps_of(scenario, rng)
        yield Case(
            f"{scenario.world_size} ranks, {label}", 1, [(dumps,)], [scenario.answer], init=False
        )


EXERCISES = (
    Exercise(
        "repair_mismatch",
        "6.1",
        "Share the best",
        NOTEBOOK,
        Kind.RANKS,
        _repair_mismatch,
        (
            "Which rank is best depends on data that each rank has alone. Before the ranks act on it, "
            "all of them must know it.",
            "`all_gather` the losses: then every rank has the same list, finds the same winner, and "
            "all call `broadcast(weight, src=winner)`.",
            "losses = [torch.empty_like(loss) for _ in range(world_size)]; dist.all_gather(losses, "
            "loss); winner = losses.index(min(losses)), which of a tie is the lowest rank; broadcast; "
            "return weight and torch.cat(losses).mean().",
        ),
        minutes=10,
        difficulty=2,
        rules=(
            OnlyCalls(("all_gather", "all_reduce", "broadcast")),
            Count("broadcast", 1),
            Holds(_weights_by_broadcast, "only the broadcast carries weights", forbids=True),
        ),
        look=look_at_mismatch,
    ),
    Exercise(
        "repair_missing_rank",
        "6.2",
        "Wait for nobody in vain",
        NOTEBOOK,
        Kind.MODULE,
        _repair_missing_rank,
        (
            "Two things are wanted: all ranks make the same number of steps, and a rank that never "
            "comes is named. Begin with the first.",
            "An all_reduce with `op=dist.ReduceOp.MAX` of each rank's number of batches gives the "
            "number of steps. A rank without a batch for a step adds zero.",
            "First line: dist.monitored_barrier(timeout=patience, wait_all_ranks=True). Then steps = "
            "torch.tensor(len(batches)); all_reduce it with MAX; for step in range(steps.item()): "
            "total = batches[step].sum() if step < len(batches) else torch.zeros(()); all_reduce.",
        ),
        minutes=15,
        difficulty=3,
        rules=(
            OnlyCalls(("all_reduce", "barrier")),
            Count(
                "all_reduce",
                steps,
                at_most=True,
                why="One to agree on the number of steps, and one for each step.",
            ),
        ),
        programme=f"{_PROGRAMMES}:with_absent_ranks",
        look=look_at_missing,
        own_network=True,
    ),
    Exercise(
        "repair_shape_mismatch",
        "6.3",
        "Parts of any length",
        NOTEBOOK,
        Kind.RANKS,
        _repair_shape_mismatch,
        (
            "all_gather needs tensors of one size on all ranks. Which size would do for everybody?",
            "First gather the lengths (one int64 from each rank). Pad your tensor to the longest one, "
            "gather, and cut each part to its own length.",
            "padded = x.new_zeros(longest); padded[:len(x)] = x; parts = [torch.empty_like(padded) "
            "for _ in range(world_size)]; dist.all_gather(parts, padded); return torch.cat([p[:n] "
            "for p, n in zip(parts, lengths)]).",
        ),
        minutes=12,
        difficulty=3,
        rules=(
            Holds(_no_pickles, "tensors travel unpickled", forbids=True),
            OnlyCalls(("all_gather",)),
            Count("all_gather", 2),
        ),
        look=look_at_shapes,
    ),
    Exercise(
        "repair_rank0_only_barrier",
        "6.4",
        "Prepare once, read everywhere",
        NOTEBOOK,
        Kind.MODULE,
        _repair_rank0_only_barrier,
        (
            "Which of the three steps does rank 0 alone take, and which does every rank take?",
            "Only `prepare()` belongs under `if rank == 0`. The barrier stands after it, outside the if.",
            "if rank == 0: prepare(). Then, on every rank: dist.barrier(); return read().",
        ),
        minutes=5,
        difficulty=1,
        rules=(
            OnlyCalls(("barrier",)),
            Count("barrier", 1),
            Holds(_prepared_once, "rank 0 prepares once, every rank reads once"),
        ),
        programme=f"{_PROGRAMMES}:with_a_file",
        look=look_at_barrier,
    ),
    Exercise(
        "who_hangs",
        "6.5",
        "Who hangs?",
        NOTEBOOK,
        Kind.JUDGEMENT,
        _who_hangs,
        (
            "Make a table first: for each collective_seq_id, what did each rank call, with which sizes? "
            "A dict from seq to (name, sizes) for each rank will do.",
            "Go through the seq ids in rising order, from the first that every dump still has. At the "
            "first one that not all ranks have: missing. Where names differ: op. Where sizes differ: "
            "size.",
            "The culprits of 'missing' are the ranks without that seq. For 'op' and 'size' count the "
            "values with collections.Counter: the most common one is right, who has another is a "
            "culprit. Start at max(min(table) for table in tables), end at the largest seq of all.",
        ),
        minutes=18,
        difficulty=4,
        look=look_at_dumps,
    ),
)
