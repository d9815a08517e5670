"""The worlds on which answers of notebook 12 are tried, and what may travel in each."""

from __future__ import annotations

import random
from collections.abc import Iterator

import torch

from helpers.exercises import draws
from helpers.exercises.look_at_pipeline import StageDid
from helpers.exercises.look_at_placement import HalfIs, TorchsStageDid
from helpers.exercises.model import Case
from helpers.exercises.pipeline_models import (
    WIDTH,
    pipeline_truth,
    split_truth,
    stage_modules,
    two_halves,
)
from helpers.views.plain import plural
from helpers.views.schedule_times import idle_share

TIMEOUT_S = 6.0


def split_cases(rng: random.Random) -> Iterator[Case]:
    for rows, cut, width, dtype in (
        (8, 2, 12, torch.float32),
        (5, 4, 7, torch.float64),
        (1, 2, 3, torch.float32),
    ):
        seed, (x, y) = rng.randrange(1000), draws.digits(rng, rows, dtype)
        model = two_halves(seed, cut, width, dtype)
        loss, wanted = split_truth(model, x, y)
        halves = (range(cut), range(cut, len(model)))
        more = (cut, width, seed, dtype == torch.float64)
        yield Case(
            f"{plural(rows, 'sample')}, cut at layer {cut}, {str(dtype).removeprefix('torch.')}",
            2,
            [(x, None, *more), (None, y, *more)],
            [
                HalfIs(
                    rank,
                    loss,
                    half,
                    {n: g if int(n.split(".")[0]) in half else None for n, g in wanted.items()},
                )
                for rank, half in enumerate(halves)
            ],
            timeout_s=TIMEOUT_S,
        )


def split_bytes(case: Case, rank: int) -> int:
    _, y, _, width, _, double = case.inputs[1]
    return int(len(y) * width * (8 if double else 4))


def gpipe_cases(rng: random.Random) -> Iterator[Case]:
    return _schedule_cases(rng, "gpipe", ((2, 3, 4), (3, 5, 1), (4, 2, 3)))


def one_f_one_b_cases(rng: random.Random) -> Iterator[Case]:
    return _schedule_cases(rng, "1f1b", ((2, 3, 4), (3, 5, 2), (4, 2, 1)))


def _schedule_cases(
    rng: random.Random, schedule: str, worlds: tuple[tuple[int, int, int], ...]
) -> Iterator[Case]:
    for number, (stages, microbatches, rows) in enumerate(worlds):
        seed, dtype = rng.randrange(1000), (torch.float32, torch.float64)[number % 2]
        inputs, targets = (_normal(rng, microbatches, rows, dtype) for _ in range(2))
        truth = pipeline_truth(stage_modules(seed, stages, dtype), inputs, targets)
        given = [inputs, *[[] for _ in range(stages - 2)], targets]
        name = "" if dtype == torch.float32 else ", float64"
        yield Case(
            f"{stages} stages, {plural(microbatches, 'microbatch')}{name}",
            stages,
            [(mine, rows, microbatches, seed, dtype == torch.float64) for mine in given],
            [StageDid(rank, stages, each, schedule) for rank, each in enumerate(truth)],
            timeout_s=TIMEOUT_S,
        )


def _normal(rng: random.Random, count: int, rows: int, dtype: torch.dtype) -> list[torch.Tensor]:
    generator = torch.Generator().manual_seed(rng.randrange(1 << 31))
    drawn = torch.randn(count, rows, WIDTH, generator=generator, dtype=torch.float64).to(dtype)
    return list(drawn)


def neighbours(case: Case, rank: int) -> tuple[int, ...]:
    return tuple(r for r in (rank - 1, rank + 1) if 0 <= r < case.world_size)


def messages(case: Case, rank: int) -> int:
    """One activation onwards and one gradient back for each microbatch."""
    return int(case.inputs[rank][2]) * len(neighbours(case, rank))


def message_bytes(case: Case, rank: int) -> int:
    rows, double = case.inputs[rank][1], case.inputs[rank][4]
    return int(messages(case, rank) * rows * WIDTH * (8 if double else 4))


def torchs_cases(rng: random.Random) -> Iterator[Case]:
    for stages, microbatches, rows in ((2, 4, 2), (3, 3, 1)):
        seed = rng.randrange(1000)
        inputs, targets = (_normal(rng, microbatches, rows, torch.float32) for _ in range(2))
        truth = pipeline_truth(stage_modules(seed, stages, torch.float32), inputs, targets)
        x, y = torch.cat(inputs), torch.cat(targets)
        yield Case(
            f"{stages} stages, {len(x)} samples in {microbatches} microbatches",
            stages,
            [
                (x if r == 0 else None, y if r == stages - 1 else None, microbatches, seed)
                for r in range(stages)
            ],
            [TorchsStageDid(rank, stages, each) for rank, each in enumerate(truth)],
            timeout_s=20.0,  # a rank may have to import torch.distributed.pipelining first
        )


def bubble_cases(rng: random.Random) -> Iterator[Case]:
    given: tuple[tuple[str, list[list[tuple[float, float]]]], ...] = (
        ("two stages, one microbatch", [[(0.0, 1.0), (4.0, 6.0)], [(1.0, 2.0), (2.0, 4.0)]]),
        ("a schedule that begins at 250", _even(rng.randint(3, 5), rng.randint(2, 6), 250.0)),
        ("stages of different speed, spans in any order", _uneven(rng)),
        ("a stage that never works", [[(1.5, 2.0), (2.5, 4.0)], [], [(2.0, 2.5)]]),
        ("one stage that is always busy", [[(0.0, 2.0), (2.0, 6.0)]]),
    )
    for label, busy in given:
        yield Case(label, 1, [(busy,)], [idle_share(busy)], tolerance=1e-6)


def _even(stages: int, microbatches: int, begin: float) -> list[list[tuple[float, float]]]:
    turn = begin + stages - 1 + microbatches
    return [
        [(begin + s + i, begin + s + i + 1) for i in range(microbatches)]
        + [
            (turn + 2 * (stages - 1 - s + i), turn + 2 * (stages - s + i))
            for i in range(microbatches)
        ]
        for s in range(stages)
    ]


def _uneven(rng: random.Random) -> list[list[tuple[float, float]]]:
    stages = []
    for _ in range(3):
        now, spans = rng.uniform(0.0, 2.0), []
        for _ in range(4):
            length = rng.uniform(0.5, 2.0)
            spans.append((now, now + length))
            now += length + rng.choice((0.0, 0.75))
        rng.shuffle(spans)
        stages.append(spans)
    return stages
