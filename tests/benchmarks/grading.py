"""Measure how long grading takes, for an exercise in a sandbox and for a whole submission."""

from __future__ import annotations

import statistics
from collections.abc import Iterator
from pathlib import Path

from helpers.checks.kinds import Kind
from helpers.checks.registry import get
from helpers.grading.cache import Cache, current_versions
from helpers.grading.grader import Grader
from helpers.grading.reference_health import References
from helpers.grading.sandbox.levels import Plan, choose_level
from helpers.grading.sandbox.staged import StagedFiles
from helpers.grading.submissions import Job
from tests.benchmarks.timing import Figure

SOLUTIONS = Path(__file__).parents[2] / "solutions"


def sandboxed_grading() -> Iterator[Figure]:
    """Grade the solved notebooks, each as one submission: visible and hidden cases."""
    by_kind: dict[Kind, list[float]] = {kind: [] for kind in Kind}
    whole = {}
    with StagedFiles() as staged:
        level = choose_level("auto", staged)
        plan = Plan(level, staged)
        versions = current_versions(level)
        references = References(SOLUTIONS, plan)
        grader = Grader(plan, "a secret", Cache(None), versions, references, pictures="none")
        for path in sorted(SOLUTIONS.glob("*.ipynb")):
            record = grader.grade(Job("bench", path, path.name))
            whole[path.stem] = record.seconds
            for each in record.exercises:
                by_kind[get(each.name).kind].append(each.seconds)
    quick = sum((by_kind[kind] for kind in (Kind.RANKS, Kind.MODULE, Kind.LOCAL)), [])
    slow = by_kind[Kind.SCRIPT] + by_kind[Kind.MEASUREMENT]
    yield _spread(f"grading, an exercise (ranks, module, local), {level}", quick, "≤ 0.4 s, median")
    yield _spread(f"grading, an exercise (script, measurement), {level}", slow, "≤ 15 s")
    slowest = max(whole, key=lambda name: whole[name])
    yield Figure(
        "grading, a whole submission",
        f"{statistics.median(whole.values()):.1f} s",
        f"the longest, {slowest}: {whole[slowest]:.1f} s",
        target="≤ 60 s",
    )


def _spread(what: str, seconds: list[float], target: str) -> Figure:
    text = f"{statistics.median(seconds):.2f} s ({min(seconds):.2f} to {max(seconds):.2f})"
    return Figure(what, text, target=target)
