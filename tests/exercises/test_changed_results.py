"""Assert that every part of a result is judged: a right result with one changed part is wrong.

`accepted_changes.toml` lists the parts that may differ, with the reason. The reference solution of each
exercise runs once; its results are changed a hundred times and judged again, without ranks.
"""

from __future__ import annotations

import random
import tomllib
from collections.abc import Iterator
from dataclasses import replace
from itertools import groupby
from pathlib import Path
from typing import Any

import pytest
import torch

from helpers.answers.data import Answer
from helpers.answers.reader import read_answers
from helpers.checks import right_values
from helpers.checks.case import Measured
from helpers.checks.case_runs import run_in_one_world
from helpers.checks.compare import _SUM_TOLERANCES
from helpers.checks.execution import Execution
from helpers.checks.exercise import VISIBLE_SECRET
from helpers.checks.judge import judge
from helpers.checks.kinds import Kind
from helpers.checks.registry import exercises, get
from helpers.checks.worlds import Turn, Worlds
from helpers.course.workspace import find_workspace

ACCEPTED = tomllib.loads((Path(__file__).parent / "accepted_changes.toml").read_text())
"""Exercise -> part of its result (a name of `changes`, possibly only up to the comma) -> reason."""
CHANGES = 100
ALONE = 2
"""Number of cases per world size, for exercises whose cases cannot share a world."""
ALWAYS = ("ring_all_reduce", "global_argmax", "ShardedOptimizer", "who_hangs")
"""One exercise for each kind of result, for every run of the tests; `make soak` changes all."""

pytestmark = [pytest.mark.timeout(300), pytest.mark.usefixtures("preloaded")]


def results(name: str) -> list[Execution]:
    """Return the reference solution's runs of the cases with the smallest world sizes."""
    exercise = get(name)
    path = find_workspace().solutions / f"{exercise.notebook}.ipynb"
    answer = read_answers(path, [name])[name]
    assert isinstance(answer, Answer), answer
    # fill in the reference's results, because otherwise no result is right and no change is detected
    cases = right_values.draw(exercise, VISIBLE_SECRET)[: None if exercise.last is None else -1]
    groups = [list(group) for _, group in groupby(cases, key=lambda case: case.world_size)]
    worlds = Worlds(exercise, [answer.source])
    tried = []
    for group in groups[:3]:
        turns = [Turn(case, number) for number, case in enumerate(group)]
        together = run_in_one_world(worlds, turns)
        tried += [run.execution for run in together.values() if run.execution is not None]
        tried += [worlds.run_alone(turn) for turn in turns if id(turn.case) not in together][:ALONE]
    return tried


def changes(value: Any, rng: random.Random, part: str = "result") -> Iterator[tuple[str, Any]]:
    """Yield the value with one changed part, in each possible way, and the part's name."""
    if isinstance(value, Measured):  # the timings are measured by the check
        for name, other in changes(value.found, rng, part):
            yield name, value._replace(found=other)
        return
    if isinstance(value, dict):
        for key in value:
            own, without = (str(key), f"without {key}") if part == "result" else (part, part)
            for name, other in changes(value[key], rng, own):
                yield name, {**value, key: other}
            if value[key] is not None and not isinstance(value[key], str):  # nothing may be missing
                yield without, {k: v for k, v in value.items() if k != key}
    elif isinstance(value, (list, tuple)):
        for at in rng.sample(range(len(value)), min(3, len(value))):
            own = f"{part}[{at}]" if isinstance(value, tuple) else part
            for name, other in changes(value[at], rng, own):
                yield name, type(value)([*value[:at], other, *value[at + 1 :]])
        yield part, value[:-1] if value else [None]
    elif isinstance(value, torch.Tensor):
        yield from _tensors(value, rng, part)
    elif isinstance(value, bool):
        yield part, not value
    elif isinstance(value, (int, float)):
        yield part, value + 1 + (abs(value) if isinstance(value, float) else 0)
        yield part, -value - 1
    elif isinstance(value, str):
        yield part, value + "x"
    if value is not False:  # None means the same as an empty observation
        yield f"{part}, None", None if value is not None else 0


def _tensors(
    value: torch.Tensor, rng: random.Random, part: str
) -> Iterator[tuple[str, torch.Tensor]]:
    if value.numel():
        other = value.clone().flatten()
        at = rng.randrange(len(other))
        if value.dtype is torch.bool:
            other[at] = ~other[at]
        else:
            other[at] += 1
            # Change it by more than the rounding error of sums of its largest elements
            if value.is_floating_point():
                other[at] += other[at].abs() + 10 * _SUM_TOLERANCES[value.dtype] * other.abs().max()
        yield part, other.reshape(value.shape)
    yield f"{part}, shape", value[None]
    other_dtype = torch.float16 if value.dtype is not torch.float16 else torch.float32
    yield f"{part}, dtype", value.to(other_dtype)


@pytest.mark.extended
@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=() if name in ALWAYS else pytest.mark.soak)
        for name, exercise in exercises().items()
        if exercise.kind is not Kind.SCRIPT
    ],
)
def test_partly_changed_result_is_wrong(name: str) -> None:
    exercise, rng = get(name), random.Random(name)
    tried = [each for each in results(name) if each.run.ok]
    assert tried
    found = []
    for each in tried:
        for rank, value in enumerate(each.run.values):
            found += [(each, rank, *change) for change in changes(value, rng)]
    accepted = set()
    for each, rank, part, value in rng.sample(found, min(CHANGES, len(found))):
        values = [value if r == rank else own for r, own in enumerate(each.run.values)]
        try:
            passed = judge(exercise, replace(each, run=replace(each.run, values=values))).passed
        except Exception:  # in this case `grade` reports that the value cannot be judged
            continue
        named = {part, part.rpartition(", ")[0]}
        if passed and not named & ACCEPTED.get(name, {}).keys():
            accepted.add(f"{part!r}: {str(each.run.values[rank])[:300]} -> {str(value)[:300]}")
    assert not accepted, f"{len(accepted)} changes pass:\n" + "\n".join(sorted(accepted)[:20])
