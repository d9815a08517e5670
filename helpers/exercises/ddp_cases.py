"""The worlds on which answers of notebook 09 are tried, and how much may travel in each."""

from __future__ import annotations

import math
import random
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from typing import Any

import torch

from helpers.exercises import draws
from helpers.exercises.ddp_models import Assorted, Route, assorted, nbytes, packed, state
from helpers.exercises.ddp_truth import train_replicas
from helpers.exercises.look_at_comm import CompressedAre, SwitchedAre, UnusedAre
from helpers.exercises.look_at_ddp import StateIs, WrappedIs
from helpers.exercises.model import Case
from helpers.exercises.sgd_models import classifier
from helpers.exercises.sgd_truth import Momentum, batch_grads, mean_of
from helpers.trace.events import Trace
from helpers.views.plain import plural

_BOTH: Route = ("left", "right")
_TURNED: Route = ("right", "left")
_WORDS = 9


def broadcast_cases(rng: random.Random) -> Iterator[Case]:
    for world_size, src, double in ((2, 0, False), (3, 2, True), (4, 1, False)):
        seed = rng.randrange(1000)
        dtype = torch.float64 if double else torch.float32
        wanted = state(assorted(seed + src, True, dtype))
        yield Case(
            f"{world_size} ranks, from rank {src}, {str(dtype).removeprefix('torch.')}",
            world_size,
            [(src, seed, double)] * world_size,
            [StateIs(wanted)] * world_size,
        )


def state_bytes(case: Case, rank: int) -> int:
    dtype = torch.float64 if case.inputs[rank][2] else torch.float32
    return nbytes(state(assorted(0, True, dtype)).values())


def state_count(case: Case, rank: int) -> int:
    return len(state(assorted(0, True)))


def _train_case(
    rng: random.Random,
    label: str,
    routes: Sequence[Route],
    steps: int,
    spare: bool,
    momentum: float,
    *more: Any,
) -> Case:
    """Make a case in which each rank takes its own words along its own route."""
    seed, rule = rng.randrange(1000), Momentum(0.5, momentum)
    words = [
        torch.tensor(rng.choices(range(Assorted.WORDS), k=steps * _WORDS)).view(steps, _WORDS)
        for _ in routes
    ]
    truth = train_replicas(words, routes, seed, spare, rule)
    return Case(
        f"{len(routes)} ranks, {steps} steps{label}",
        len(routes),
        [
            (mine, route, seed, spare, rule.lr, momentum, *more)
            for mine, route in zip(words, routes, strict=True)
        ],
        [
            WrappedIs(state(assorted(seed, spare)), truth, rank, _trained(spare))
            for rank in range(len(routes))
        ],
        timeout_s=6.0,
    )


@cache
def _trained(spare: bool) -> frozenset[str]:
    return frozenset(n for n, p in assorted(0, spare).named_parameters() if p.requires_grad)


def hooked_cases(rng: random.Random) -> Iterator[Case]:
    yield _train_case(rng, "", [_BOTH] * 2, 3, False, 0.0)
    yield _train_case(rng, ", a layer that nobody uses", [("left",)] * 3, 3, True, 0.9)
    yield _train_case(rng, ", momentum 0.5", [_TURNED] * 4, 2, False, 0.5)


def bucketed_cases(rng: random.Random) -> Iterator[Case]:
    yield _train_case(rng, ", buckets of 160 bytes", [_BOTH] * 2, 3, False, 0.0, 160)
    turned = [_BOTH, _TURNED, _BOTH]
    yield _train_case(
        rng, ", 128 bytes, the layers in another order on rank 1", turned, 2, False, 0.9, 128
    )
    some: list[Route] = [("left",), ("right",), _BOTH]
    yield _train_case(rng, ", 100 bytes, ranks use different layers", some, 3, True, 0.0, 100)
    yield _train_case(rng, ", 8 bytes: a bucket for each", [_BOTH] * 2, 2, False, 0.0, 8)
    yield _train_case(rng, ", one bucket for all", [_TURNED] * 4, 2, False, 0.5, 1_000_000)


def all_used(case: Case) -> bool:
    """Tell whether every rank uses every trained parameter."""
    return not case.inputs[0][3] and all(set(given[1]) == set(_BOTH) for given in case.inputs)


def _steps(case: Case, rank: int) -> int:
    return len(case.inputs[rank][0])


def gradient_sizes(case: Case, rank: int) -> list[int]:
    """Give the bytes of each trained parameter's gradient, in the model's order."""
    spare: bool = case.inputs[rank][3]
    return [nbytes([p]) for p in assorted(0, spare).parameters() if p.requires_grad]


def gradients_bytes(case: Case, rank: int) -> int:
    return _steps(case, rank) * sum(gradient_sizes(case, rank))


def gradients_calls(case: Case, rank: int) -> int:
    return _steps(case, rank) * len(gradient_sizes(case, rank))


def wrapper_bytes(case: Case, rank: int) -> int:
    """Allow all state once, and the buffers once a step."""
    model = assorted(0, True)
    return nbytes(state(model).values()) + _steps(case, rank) * nbytes(model.buffers())


def wrapper_calls(case: Case, rank: int) -> int:
    model = assorted(0, True)
    return len(state(model)) + _steps(case, rank) * len(list(model.buffers()))


def bucket_problem(trace: Trace, case: Case) -> str:
    """Say which all_reduces are not the buckets of this model."""
    for rank in range(case.world_size):
        sizes = gradient_sizes(case, rank)[::-1]
        wanted = packed(sizes, case.inputs[rank][6])
        made = [event.nbytes for event in trace.of(rank) if event.op == "all_reduce"]
        steps = _steps(case, rank)
        if sorted(made) != sorted(wanted * steps):
            if not made:
                return (
                    f"rank {rank} makes no all_reduce; a step has {plural(len(wanted), 'bucket')}."
                )
            first = ", ".join(map(str, made[: max(1, len(made) // steps)]))
            return (
                f"rank {rank} makes {len(made)} all_reduces in {steps} steps, the first ones of "
                f"{first} bytes; the buckets of a step have {', '.join(map(str, wanted))} bytes. Go "
                "through the trained parameters from the last to the first; where one would not fit, "
                "begin a new bucket (one that fills it exactly still fits)."
            )
    return ""


def no_sync_cases(rng: random.Random) -> Iterator[Case]:
    for world_size, microbatches, size in ((2, 4, 3), (3, 2, 5), (2, 1, 6)):
        seed, steps = rng.randrange(1000), 2
        given: list[list[Any]] = [[] for _ in range(world_size)]
        wanted = []
        for _ in range(steps):
            x, y = draws.digits(rng, world_size * microbatches * size, torch.float64)
            parts = list(zip(x.split(size), y.split(size), strict=True))
            for rank in range(world_size):
                given[rank].append(parts[rank * microbatches : (rank + 1) * microbatches])
            wanted.append(batch_grads(x, y, seed))
        yield Case(
            f"{world_size} ranks, {steps} steps of {microbatches} microbatch{'es' * (microbatches > 1)}",
            world_size,
            [(mine, seed) for mine in given],
            [SwitchedAre(tuple(wanted))] * world_size,
        )


def one_a_step(case: Case, rank: int) -> int:
    return len(case.inputs[rank][0])


def unused_cases(rng: random.Random) -> Iterator[Case]:
    worlds: tuple[tuple[str, list[Route], int, bool], ...] = (
        ("each its own layers", [("left",), ("right",), _BOTH], 0, False),
        ("a graph 3,000 functions deep", [("left",) * 1500, ("right",) * 1500], 0, False),
        ("a graph with 2^60 paths", [("left",), _BOTH], 60, False),
        ("an output that depends on nothing", [_BOTH, _BOTH], 0, True),
    )
    names = [n for n, p in assorted(0, True).named_parameters() if p.requires_grad]
    for label, routes, doublings, detached in worlds:
        seed = rng.randrange(1000)
        words = [torch.tensor(rng.choices(range(Assorted.WORDS), k=5)) for _ in routes]
        yield Case(
            f"{len(routes)} ranks: {label}",
            len(routes),
            [(mine, r, seed, doublings, detached) for mine, r in zip(words, routes, strict=True)],
            [UnusedAre(tuple(n for n in names if detached or _is_left_out(n, r))) for r in routes],
            timeout_s=3.0,
        )


def _is_left_out(name: str, route: Route) -> bool:
    layer = name.partition(".")[0]
    return layer == "spare" or (layer in _BOTH and layer not in route)


_MOST_OF_HALF = 60_000
"""Well below the largest float16, 65,504."""


def _largest(grads: Iterable[Mapping[str, torch.Tensor | None]]) -> float:
    return max(float(g.abs().max()) for each in grads for g in each.values() if g is not None)


def compress_cases(rng: random.Random) -> Iterator[Case]:
    worlds = ((2, torch.float32, 0.0), (3, torch.float64, 0.0), (4, torch.float32, 90_000.0))
    for world_size, dtype, sum_reaches in worlds:
        alone = math.inf
        while (
            alone > _MOST_OF_HALF
        ):  # of one rank: torch's own hook makes it float16 before it divides
            seed, each = rng.randrange(1000), 16
            x, y = draws.digits(rng, world_size * each, dtype)
            shards = list(zip(x.split(each), y.split(each), strict=True))
            own = [batch_grads(mx.double(), my, seed) for mx, my in shards]
            mean = mean_of(own)
            largest = _largest([mean])
            scale = sum_reaches / largest / world_size if sum_reaches else 1.0
            alone = scale * _largest(own)
        large = f", sums up to {sum_reaches:,.0f}" if sum_reaches else ""
        wanted = {n: None if g is None else (scale * g).to(dtype) for n, g in mean.items()}
        yield Case(
            f"{world_size} ranks, {str(dtype).removeprefix('torch.')}{large}",
            world_size,
            [(*shard, seed, scale) for shard in shards],
            [CompressedAre(wanted)] * world_size,
        )


def half_the_bytes(trace: Trace, case: Case) -> str:
    """Say which all_reduce does not carry float16."""
    for event in trace:
        if event.op == "all_reduce" and event.dtype != "float16":
            at = f" ({event.where})" if event.where else ""
            return (
                f"rank {event.rank} hands {event.dtype} to all_reduce{at}; torch.float16 is wanted."
            )
    return ""


@cache
def _classifier_bytes() -> int:
    return sum(2 * p.numel() for p in classifier(0).parameters())


def compressed_bytes(case: Case, rank: int) -> int:
    return 2 * _classifier_bytes()


def compressed_calls(case: Case, rank: int) -> int:
    return 4
