"""The check of `memory_plan`: models and machines, the bytes that each stage of ZeRO needs, what is wrong."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from helpers.exercises.compare import difference
from helpers.exercises.model import Case
from helpers.exercises.problems import first_problem
from helpers.exercises.zero_programmes import share
from helpers.ranks.run import Run


def plan_cases(rng: random.Random) -> Iterator[Case]:
    worlds = (
        ("a small model, many GPUs", 8, 12, 0),
        ("the optimizer's state is what does not fit", 8, 24, 1),
        ("gradients, too", 16, 36, 2),
        ("everything in shards", 64, 80, 3),
        ("too few ranks", 3, 40, 4),
        ("shards that do not divide", 7, 5, 3),
    )
    for label, ranks, blocks, stage in worlds:
        block = rng.randrange(30_000_000, 90_000_000)
        layers = [rng.randrange(20_000_000, 60_000_000), *[block] * blocks, rng.randrange(9_000)]
        rng.shuffle(layers)
        needs = plan_of(layers, ranks)
        memory = _between(needs, stage, rng)
        answer = next((n for n, need in enumerate(needs) if need <= memory), None)
        yield Case(
            f"{sum(layers) / 1e9:.1f} billion parameters, {ranks} ranks: {label}",
            1,
            [(layers, ranks, memory)],
            [PlanIs(tuple(needs), answer, tuple(layers), ranks, memory)],
        )


def plan_of(layers: Sequence[int], ranks: int) -> list[int]:
    """Give the bytes a rank needs without sharding and with ZeRO-1, 2 and 3 (mixed-precision Adam)."""
    total, own = sum(layers), share(sum(layers), ranks)
    return [
        16 * total,
        4 * total + 12 * own,
        2 * total + 14 * own,
        16 * own + 4 * max(layers),
    ]


def _between(needs: Sequence[int], stage: int, rng: random.Random) -> int:
    """Draw a memory in which this stage is the first that fits; stage 4: none does."""
    if stage == 4:
        return min(needs) - rng.randrange(1, 1000)
    if stage == 0:
        return needs[0] + rng.randrange(1000)
    return needs[stage] if rng.random() < 0.5 else (needs[stage] + needs[stage - 1]) // 2


@dataclass(frozen=True)
class PlanIs:
    """The bytes that a rank needs for each stage, and the first that fits."""

    needs: tuple[int, ...]
    stage: int | None
    layers: tuple[int, ...]
    ranks: int
    memory: int

    def __call__(self, value: Any) -> str:
        if not isinstance(value, (tuple, list)) or len(value) != 2:
            return "two things must come back: (needs, stage)"
        needs, stage = value
        if not isinstance(needs, (tuple, list)) or len(needs) != len(self.needs):
            return "`needs` is a list of four numbers: no sharding, ZeRO-1, ZeRO-2, ZeRO-3"
        for number, (wanted, got) in enumerate(zip(self.needs, needs, strict=True)):
            if difference(wanted, got, 1e-12):
                return f"needs[{number}] is {_number(got)}; {wanted:,} is right{self._why(number, got)}"
        if difference(self.stage, stage):
            return f"the needs are right; the stage is {stage!r} and should be {self.stage!r}{self._first()}"
        return ""

    def _why(self, number: int, got: Any) -> str:
        if not isinstance(got, (int, float)) or isinstance(got, bool):
            return ": a number of bytes"
        total, off = sum(self.layers), got - self.needs[number]
        own = share(total, self.ranks)
        if off and abs(off) <= 16:
            return ": round the share up to whole elements, then multiply by its bytes"
        hints = {
            0: "2 + 2 + 12 bytes for each parameter",
            1: "weights and gradients whole, 4 bytes; the state's 12 bytes in shards",
            2: "weights whole, 2 bytes; gradients and state in shards, 14 bytes",
            3: "16 bytes for each element of the share, and the largest layer whole",
        }
        if number == 3 and got == 16 * own:
            return (
                ": for a moment one layer is whole, its weight and its gradient: 4 bytes an element"
            )
        if number == 3 and got == 16 * own + 2 * max(self.layers):
            return ": the largest layer's gradient is whole for a moment, too"
        if number == 3 and got == 16 * own + 4 * total:
            return ": only one layer at a time is whole, the largest counts"
        return f": {hints[number]}"

    def _first(self) -> str:
        fits = [n for n, need in enumerate(self.needs) if need <= self.memory]
        if not fits:
            return ": nothing fits"
        return ": the first that fits, as each further stage does not communicate less"


def _number(value: Any) -> str:
    return f"{value:,}" if isinstance(value, (int, float)) else repr(value)[:40]


def look_at_plan(case: Case, run: Run) -> str:
    """Say where the plan's first mistake can be looked up."""
    if run.failure is not None or case.expected is None:
        return ""
    problem = first_problem(case, run)
    if "must come back" in problem or "is a list of" in problem:
        return "Return `needs, stage`: a list of four numbers, and 0, 1, 2, 3 or None."
    if "round the share up" in problem:
        return (
            "`own = -(-sum(layers) // ranks)`, rounded once, over all layers; then times its bytes."
        )
    if "the needs are right" in problem:
        return (
            "From 0 to 3, the first need with `need <= memory`: equal fits. None if there is none."
        )
    if problem.startswith("needs[3]"):
        return (
            "The sentence below the table: beside the shards of all three, the largest layer's weight "
            "and gradient, 2 + 2 bytes for each of its elements (not for those of all layers)."
        )
    if problem.startswith("needs[0]"):
        return "The table's first row: add up its bytes, times the elements of all layers."
    return (
        f"The table's row for ZeRO-{problem[6]}: what is `in shards` counts for the share, "
        "the rest for the elements of all layers."
    )
