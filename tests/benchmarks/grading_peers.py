"""Grade five submissions with `course grade`, nbgrader and otter-grader, in turn, in one run.

`python -m tests.benchmarks` calls this for rows of its table. nbgrader and otter run a submission
in one kernel together with its tests, without a sandbox. otter's own sandboxes are Docker containers
(`otter grade`). `otter run`, which is measured, grades a submission in the same way without a container.
Every grading must give the expected points: four submissions are right, the last is wrong.
"""

from __future__ import annotations

import csv
import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from helpers.checks.exercise import Exercise
from helpers.checks.registry import get
from helpers.grading.record import read_records
from tests.benchmarks.grading_notebooks import (
    ASSIGNMENT,
    PING_PONG,
    TRAFFIC,
    Trial,
    answered,
    nbgrader_source,
    otter_master,
)
from tests.benchmarks.timing import Figure, median, seconds_of, spread

ROOT = Path(__file__).parents[2]
LEARNERS = 5
TURNS = 3
DEADLINE_S = 600
OURS, KEPT, ALL_CORES = "course grade --jobs 1", "a second time", "course grade"
NBGRADER = "nbgrader autograde, no sandbox"
OTTER = "otter run, tests in the submission's process, no sandbox"
_NBGRADER_CONFIG = 'c = get_config()\nc.CourseDirectory.course_id = "bench"\n'


@dataclass(frozen=True)
class Grading:
    """One way to grade the class: the timed function, and a function that reads the resulting points."""

    run: Callable[[], None]
    points: Callable[[], dict[str, float]]


def compare_with_peers() -> Iterator[Figure]:
    """Grade a class with a plain function, tested by asserts, and a class whose ranks communicate."""
    for trial in (TRAFFIC, PING_PONG):
        with TemporaryDirectory() as name:
            yield from _side_by_side(trial, Path(name))


def _side_by_side(trial: Trial, folder: Path) -> Iterator[Figure]:
    exercise = get(trial.exercise)
    _hand_in_nbgrader(trial, exercise, folder)
    archive = _hand_in_otter(trial, exercise, folder)
    must = dict.fromkeys(_learners(), float(exercise.points)) | {_learners()[-1]: 0.0}
    times: dict[str, list[float]] = {}
    for turn in range(TURNS):
        for name, grading in _gradings(folder, archive, turn).items():
            times.setdefault(name, []).append(seconds_of(grading.run))
            given = grading.points()
            assert given == must, f"{name} gave {given} for {trial.exercise}, not {must}"
    yield from _rows(trial, times, _protection(folder))


def _rows(trial: Trial, times: dict[str, list[float]], protection: str) -> Iterator[Figure]:
    what = f"grading, {LEARNERS} submissions of {trial.what}, {protection}"
    pairs = ((OURS, NBGRADER), (OURS, OTTER), (ALL_CORES, NBGRADER), (KEPT, NBGRADER))
    for ours, theirs in pairs:
        compared = f"{theirs} {spread(times[theirs])}"
        ratio = _ratio(median(times[ours]), median(times[theirs]))
        yield Figure(f"{what}: {ours}", spread(times[ours]), compared, ratio)


def _ratio(ours: float, theirs: float) -> str:
    return f"{theirs / ours:.1f}x faster" if ours <= theirs else f"{ours / theirs:.1f}x slower"


def _gradings(folder: Path, archive: Path, turn: int) -> dict[str, Grading]:
    """Return the ways to grade, in the order of their turns."""
    one, all_cores = folder / f"one{turn}", folder / f"all{turn}"
    return {
        OURS: Grading(lambda: _course(folder, one, "--jobs", "1"), lambda: _course_points(one)),
        KEPT: Grading(lambda: _course(folder, one, "--jobs", "1"), lambda: _course_points(one)),
        ALL_CORES: Grading(lambda: _course(folder, all_cores), lambda: _course_points(all_cores)),
        NBGRADER: Grading(
            lambda: _run(folder, "nbgrader", "autograde", ASSIGNMENT, "--force"),
            lambda: _nbgrader_points(folder),
        ),
        OTTER: Grading(lambda: _otter(folder, archive), lambda: _otter_points(folder)),
    }


def _learners() -> list[str]:
    return [f"learner{number}" for number in range(LEARNERS)]


def _answers(trial: Trial) -> Iterator[tuple[str, str]]:
    """Return each learner's answer. All differ, because `course grade` tries equal answers only once."""
    for learner in _learners():
        head, _, body = (trial.wrong if learner == _learners()[-1] else trial.right).partition("\n")
        yield learner, f'{head}\n    """By {learner}."""\n{body}'


def _run(folder: Path, *words: str) -> None:
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    env = {
        **os.environ,
        "PATH": path,
        "PYTHONPATH": str(ROOT),
        "REAL_RANKS_PROGRESS": str(folder / "progress.json"),
    }
    done = subprocess.run(
        [sys.executable, "-m", *words],
        cwd=folder,
        env=env,
        capture_output=True,
        text=True,
        timeout=DEADLINE_S,
    )
    assert done.returncode == 0, f"{words}: {done.stdout}{done.stderr}"


# --- course grade, on the files that nbgrader grades ----------------------------------------------


def _course(folder: Path, out: Path, *options: str) -> None:
    _run(folder, "helpers.course.cli", "grade", "submitted", "--out", str(out), *options)


def _course_points(out: Path) -> dict[str, float]:
    records = read_records(out)
    assert not any(each.cached for record in records for each in record.exercises)
    return {record.learner: record.points for record in records}


def _protection(folder: Path) -> str:
    return read_records(folder / "one0")[0].protection.level


# --- nbgrader -------------------------------------------------------------------------------------


def _hand_in_nbgrader(trial: Trial, exercise: Exercise, folder: Path) -> None:
    """Make the assignment like an instructor, and fill in the released notebook."""
    (folder / "nbgrader_config.py").write_text(_NBGRADER_CONFIG)
    place = Path(ASSIGNMENT, f"{exercise.notebook}.ipynb")
    _write(folder / "source" / place, nbgrader_source(trial, exercise.points))
    _run(folder, "nbgrader", "generate_assignment", ASSIGNMENT)
    released = json.loads((folder / "release" / place).read_text())
    for learner, answer in _answers(trial):
        _write(folder / "submitted" / learner / place, answered(released, trial, answer))


def _nbgrader_points(folder: Path) -> dict[str, float]:
    _run(folder, "nbgrader", "export", "--to", "grades.csv")
    with (folder / "grades.csv").open() as file:
        return {row["student_id"]: float(row["score"]) for row in csv.DictReader(file)}


# --- otter-grader ---------------------------------------------------------------------------------


def _hand_in_otter(trial: Trial, exercise: Exercise, folder: Path) -> Path:
    """Make the assignment like an instructor, fill it in, and return the autograder's archive."""
    master = folder / "otter" / f"{exercise.notebook}.ipynb"
    _write(master, otter_master(trial, exercise.points))
    _run(folder / "otter", "otter", "assign", master.name, "dist", "--no-run-tests", "--no-pdfs")
    released = json.loads((folder / "otter" / "dist" / "student" / master.name).read_text())
    for learner, answer in _answers(trial):
        _write(folder / "otter" / f"{learner}.ipynb", answered(released, trial, answer))
    (archive,) = (folder / "otter" / "dist" / "autograder").glob("*-autograder_*.zip")
    return archive


def _otter(folder: Path, archive: Path) -> None:
    for learner in _learners():
        out = folder / "otter" / f"{learner}-results"
        out.mkdir(exist_ok=True)
        words = ("run", f"otter/{learner}.ipynb", "-a", str(archive), "-o", str(out), "--no-logo")
        _run(folder, "otter", *words)


def _otter_points(folder: Path) -> dict[str, float]:
    points = {}
    for learner in _learners():
        path = folder / "otter" / f"{learner}-results" / "results.json"
        tests = json.loads(path.read_text())["tests"]
        points[learner] = float(sum(test.get("score", 0.0) for test in tests))
        path.unlink()  # the next grading must write a new file
    return points


def _write(path: Path, notebook: object) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(notebook))
