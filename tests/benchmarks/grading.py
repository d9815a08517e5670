"""How long grading takes: an exercise behind walls, a whole submission, a class beside nbgrader."""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

from helpers.exercises.model import Kind, get
from helpers.grading.cache import Cache, versions_here
from helpers.grading.grader import Grader
from helpers.grading.nbgrader import write_course
from helpers.grading.references import References
from helpers.grading.staged import Staged
from helpers.grading.submissions import Job
from helpers.grading.walls import Plan, choose
from tests.benchmarks.timing import Figure, seconds_of
from tests.grading.notebooks import RIGHT, write_notebook

SOLUTIONS = Path(__file__).parents[2] / "solutions"
NAME = "02_blocking_p2p"
LEARNERS = 5


def in_the_sandbox() -> Iterator[Figure]:
    """Grade the solved notebooks, each as one submission: visible and hidden cases."""
    by_kind: dict[Kind, list[float]] = {kind: [] for kind in Kind}
    whole = {}
    with Staged() as staged:
        level = choose("auto", staged)
        plan = Plan(level, staged)
        versions = versions_here(level)
        with Grader(
            plan, "a secret", Cache(None), versions, References(SOLUTIONS, plan), pictures="none"
        ) as grader:
            for path in sorted(SOLUTIONS.glob("*.ipynb")):
                record = grader.grade(Job("bench", path, path.name))
                whole[path.stem] = record.seconds
                for each in record.exercises:
                    by_kind[get(each.name).kind].append(each.seconds)
    quick = sum((by_kind[kind] for kind in (Kind.RANKS, Kind.MODULE, Kind.LOCAL)), [])
    slow = by_kind[Kind.SCRIPT] + by_kind[Kind.MEASUREMENT]
    yield _spread(f"grading, an exercise (ranks, module, local), {level}", quick, "≤ 0.3 s, median")
    yield _spread(f"grading, an exercise (script, measurement), {level}", slow, "≤ 15 s")
    slowest = max(whole, key=lambda name: whole[name])
    yield Figure(
        "grading, a whole submission",
        f"{statistics.median(whole.values()):.1f} s",
        f"the longest, {slowest}: {whole[slowest]:.1f} s",
        target="≤ 90 s",
    )


def _spread(what: str, seconds: list[float], target: str) -> Figure:
    text = f"{statistics.median(seconds):.2f} s ({min(seconds):.2f} to {max(seconds):.2f})"
    return Figure(what, text, target=target)


def beside_nbgrader() -> Iterator[Figure]:
    """Grade five submissions of one exercise; nbgrader runs the check in the notebook, without walls."""
    with TemporaryDirectory() as name:
        folder = Path(name)
        body = RIGHT.partition("rounds):\n")[2]
        solved = RIGHT.replace(body, f"    ### BEGIN SOLUTION\n{body}    ### END SOLUTION\n")
        write_notebook(
            folder / "solutions" / f"{NAME}.ipynb",
            "from helpers import check",
            solved.strip(),
            "result = check(ping_pong)\nresult",
        )
        write_course(folder / "solutions", folder)
        _run(folder, "nbgrader", "generate_assignment", NAME)
        released = json.loads((folder / "release" / NAME / f"{NAME}.ipynb").read_text())
        for cell in released["cells"]:
            if cell["metadata"].get("nbgrader", {}).get("solution"):
                cell["source"] = RIGHT
        for number in range(LEARNERS):
            path = folder / "submitted" / f"learner{number}" / NAME / f"{NAME}.ipynb"
            path.parent.mkdir(parents=True)
            path.write_text(json.dumps(released))
        course = ("helpers.course.cli", "grade", "submitted", "--out", "out", "--jobs", "1")
        ours = seconds_of(lambda: _run(folder, *course))
        again = seconds_of(lambda: _run(folder, *course))
        theirs = seconds_of(lambda: _run(folder, "nbgrader", "autograde", NAME))
    what = f"grading, {LEARNERS} submissions of one exercise"
    beside = f"nbgrader autograde, no walls {theirs:.1f} s"
    yield Figure(what, f"{ours:.1f} s", beside, f"{theirs / ours:.1f}x faster")
    yield Figure(
        f"{what}, a second time", f"{again:.1f} s", beside, f"{theirs / again:.1f}x faster"
    )


def _run(folder: Path, *words: str) -> None:
    root = str(Path(__file__).parents[2])
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    env = {**os.environ, "PATH": path, "PYTHONPATH": root}
    subprocess.run(
        [sys.executable, "-m", *words], cwd=folder, env=env, check=True, capture_output=True
    )
