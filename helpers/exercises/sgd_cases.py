"""The worlds on which answers of notebook 08 are tried, and how much may travel in each.

Models and samples come from a case's seed; the digits are always scikit-learn's.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from functools import cache

import torch

from helpers.exercises import draws
from helpers.exercises.look_at_sgd import GradientsAre, TrainedAsOne, WeightsAre
from helpers.exercises.look_at_sgd_steps import AccumulatedAre
from helpers.exercises.model import Case
from helpers.exercises.sgd_models import (
    Branching,
    branching,
    classifier,
    trained_bytes,
    trained_count,
    weights,
)
from helpers.exercises.sgd_truth import (
    Momentum,
    Samples,
    batch_grads,
    mean_of,
    own_branch_grads,
    trained,
    trained_locally,
)
from helpers.trace.events import Trace

_FLAG_BYTES = 8
"""For each parameter: room for those who first agree on which gradients there are."""


@cache
def sizes() -> tuple[int, int]:
    """Give bytes and number of the classifier's gradients."""
    model = classifier(0)
    return trained_bytes(model), trained_count(model)


def average_cases(rng: random.Random) -> Iterator[Case]:
    left, right = Branching.BRANCHES
    both = (left, right)
    worlds = (
        ("left branch, right branch, both", torch.float64, [(left,), (right,), both]),
        ("every rank has every gradient", torch.float64, [both, both]),
        ("one rank has no gradient at all", torch.float32, [(left,), (right,), (), both]),
    )
    for label, dtype, branches in worlds:
        seed = rng.randrange(1000)
        words = [torch.tensor(rng.choices(range(Branching.WORDS), k=7)) for _ in branches]
        own = tuple(
            own_branch_grads(words[rank], walked, seed, dtype)
            for rank, walked in enumerate(branches)
        )
        mean = mean_of(own)
        yield Case(
            f"{len(branches)} ranks: {label}",
            len(branches),
            [
                (words[rank], walked, seed, dtype == torch.float64)
                for rank, walked in enumerate(branches)
            ],
            [GradientsAre(mean, own, rank, _trained_names()) for rank in range(len(branches))],
        )


@cache
def _trained_names() -> frozenset[str]:
    model = branching(0, torch.float32)
    return frozenset(name for name, p in model.named_parameters() if p.requires_grad)


def branching_bytes(case: Case, rank: int) -> int:
    model = branching(0, torch.float64 if case.inputs[rank][3] else torch.float32)
    return trained_bytes(model) + _FLAG_BYTES * trained_count(model)


def branching_calls(case: Case, rank: int) -> int:
    return 1 + len(_trained_names())


def why_so_many(nbytes: int, case: Case) -> str:
    return (
        "A weight with two names (`table` and `out` share one) travels once: `model.parameters()` "
        "gives it once. A frozen one does not travel."
    )


def training_cases(rng: random.Random) -> Iterator[Case]:
    for world_size, batch_size, steps, momentum in (
        (2, 32, 10, 0.0),
        (3, 24, 8, 0.9),
        (4, 16, 8, 0.5),
    ):
        seed, rule = rng.randrange(1000), Momentum(0.2, momentum)
        x, y = draws.digits(rng, steps * batch_size + 5)
        losses, after = trained(x, y, batch_size, steps, seed, rule)
        share = steps * batch_size // world_size
        wanted = TrainedAsOne(tuple(losses), WeightsAre(tuple(after)), share)
        yield Case(
            f"{world_size} ranks, {steps} steps of {batch_size} samples, momentum {momentum:g}",
            world_size,
            [(x, y, batch_size, steps, seed, rule.lr, momentum)] * world_size,
            [wanted] * world_size,
        )


def steps_bytes(case: Case, rank: int) -> int:
    nbytes, _ = sizes()
    steps: int = case.inputs[rank][3]
    return steps * (nbytes + 2 * _FLAG_BYTES) + _FLAG_BYTES


def steps_calls(case: Case, rank: int) -> int:
    _, count = sizes()
    steps: int = case.inputs[rank][3]
    return steps * (count + 2) + 1  # a loss, and a count for who weights the average by it


def weighted_cases(rng: random.Random) -> Iterator[Case]:
    for counts in ((3, 9), (5, 1, 14), (4, 4, 0, 7)):
        seed = rng.randrange(1000)
        x, y = draws.digits(rng, sum(counts))
        shards = list(zip(x.split(list(counts)), y.split(list(counts)), strict=True))
        own = tuple(batch_grads(*shard, seed) for shard in shards)
        whole = batch_grads(x, y, seed)
        names = frozenset(whole)
        yield Case(
            f"{len(counts)} ranks with {', '.join(map(str, counts))} samples",
            len(counts),
            [(*shard, seed) for shard in shards],
            [GradientsAre(whole, own, rank, names) for rank in range(len(counts))],
        )


def weighted_bytes(case: Case, rank: int) -> int:
    nbytes, count = sizes()
    return nbytes + _FLAG_BYTES * (count + 1)


def weighted_calls(case: Case, rank: int) -> int:
    return sizes()[1] + 2


def accumulation_cases(rng: random.Random) -> Iterator[Case]:
    for world_size, microbatches, size in ((2, 4, 3), (3, 2, 5), (2, 1, 6)):
        seed, steps = rng.randrange(1000), 2
        given: list[list[list[Samples]]] = [[] for _ in range(world_size)]
        wanted = []
        for _ in range(steps):
            x, y = draws.digits(rng, world_size * microbatches * size)
            parts = list(zip(x.split(size), y.split(size), strict=True))
            for rank in range(world_size):
                given[rank].append(parts[rank * microbatches : (rank + 1) * microbatches])
            wanted.append(batch_grads(x, y, seed))
        checks = AccumulatedAre(tuple(wanted), microbatches, size, world_size)
        yield Case(
            f"{world_size} ranks, {microbatches} microbatch{'es' * (microbatches > 1)} of {size} samples",
            world_size,
            [(mine, seed) for mine in given],
            [checks] * world_size,
        )


def accumulation_bytes(case: Case, rank: int) -> int:
    steps: Sequence[object] = case.inputs[rank][0]
    return len(steps) * weighted_bytes(case, rank)


def accumulation_calls(case: Case, rank: int) -> int:
    return len(case.inputs[rank][0]) * (sizes()[1] + 1)


def why_so_often(nbytes: int, case: Case) -> str:
    return "Add up the gradients of all microbatches first, then synchronise once."


def local_cases(rng: random.Random) -> Iterator[Case]:
    for world_size, every, steps, batch_size, rest in (
        (3, 3, 7, 6, 4),
        (2, 4, 8, 8, 0),
        (4, 1, 3, 5, 1),
    ):
        seed, rule = rng.randrange(1000), Momentum(0.2)
        each = steps * batch_size + rest
        x, y = draws.digits(rng, world_size * each)
        shards = list(zip(x.split(each), y.split(each), strict=True))
        after, end = trained_locally(shards, batch_size, every, seed, rule)
        yield Case(
            f"{world_size} ranks with {each} samples, {steps} steps, averaged every {every}",
            world_size,
            [(*shard, batch_size, every, seed, rule.lr, rule.momentum) for shard in shards],
            [WeightsAre(tuple(a), e) for a, e in zip(after, end, strict=True)],
        )


def _averagings(case: Case, rank: int) -> int:
    x, _, batch_size, every = case.inputs[rank][:4]
    return int(len(x) // batch_size // every)


def local_bytes(case: Case, rank: int) -> int:
    return _averagings(case, rank) * sizes()[0]


def local_calls(case: Case, rank: int) -> int:
    return _averagings(case, rank) * sizes()[1]


def server_cases(rng: random.Random) -> Iterator[Case]:
    for world_size, steps, batch_size, momentum in ((2, 3, 8, 0.0), (3, 4, 6, 0.9), (4, 3, 5, 0.5)):
        seed, rule = rng.randrange(1000), Momentum(0.2, momentum)
        workers = world_size - 1
        x, y = draws.digits(rng, workers * steps * batch_size)
        _, after = trained(x, y, workers * batch_size, steps, seed, rule)
        xs = x.view(steps, workers, batch_size, -1).transpose(0, 1).flatten(1, 2)
        ys = y.view(steps, workers, batch_size).transpose(0, 1).flatten(1, 2)
        given = [(x[:0], y[:0]), *zip(xs, ys, strict=True)]
        end = after[-1]
        yield Case(
            f"{world_size} ranks, {steps} steps",
            world_size,
            [(*mine, batch_size, steps, seed, rule.lr, momentum) for mine in given],
            [
                WeightsAre(tuple(after), end),
                *[WeightsAre((), end, steps_here=False)] * workers,
            ],
        )


def server_bytes(case: Case, rank: int) -> int:
    steps: int = case.inputs[rank][3]
    one = weights(classifier(0))
    rounds = steps if rank else (steps + 1) * (case.world_size - 1)
    return rounds * one.numel() * one.element_size()


def server_calls(case: Case, rank: int) -> int:
    return server_bytes(case, rank) // sizes()[0] * sizes()[1]


def star_problem(trace: Trace, case: Case) -> str:
    for event in trace.calls:
        if event.rank != 0 and event.peer not in {0, None}:
            return (
                f"rank {event.rank} talks to rank {event.peer}: a worker talks to the server, rank 0, "
                "and to nobody else."
            )
    return ""
