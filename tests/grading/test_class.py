"""Grade a whole class like an instructor: expected points, no losses, the same results twice."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import psutil
import pytest

from helpers.grading.record import Status, read_records
from tests.grading.generated import Expected, make_class

COURSE = [sys.executable, "-m", "helpers.course.cli"]


def graded(folder: Path, out: Path, timeout_s: float, *more: str) -> tuple[float, int]:
    """Run `course grade` for at most `timeout_s`. Return its seconds and its peak memory in bytes."""
    began, most = time.monotonic(), 0
    process = subprocess.Popen(
        [*COURSE, "grade", str(folder), "--out", str(out), *more],
        stdout=subprocess.DEVNULL,
        start_new_session=True,
    )
    try:
        while process.poll() is None and time.monotonic() < began + timeout_s:
            most = max(most, _memory(psutil.Process(process.pid)))
            time.sleep(2)  # measuring makes the kernel walk through all pages
    finally:
        process.kill()
        process.wait()
    return time.monotonic() - began, most


def _memory(process: psutil.Process) -> int:
    """Return the memory of a process and all its descendants, with shared memory counted once (PSS)."""
    total = 0
    for each in (process, *process.children(recursive=True)):
        with suppress(psutil.Error):  # the process may exit meanwhile
            total += each.memory_full_info().pss
    return total


def assert_as_expected(out: Path, expected: list[Expected]) -> None:
    records = {record.learner: record for record in read_records(out)}
    assert set(records) == {each.learner for each in expected}
    for each in expected:
        record = records[each.learner]
        assert (record.status is Status.GRADED) == each.readable, (each, record.message)
        for exercise in record.exercises:
            told = f"{each.learner}, {exercise.name}: {exercise.outcome}, {exercise.points}"
            if exercise.name not in each.passes:
                assert exercise.outcome == "not attempted", told
            elif each.passes[exercise.name]:
                assert (exercise.outcome, exercise.points) == ("passed", exercise.out_of), told
            else:
                assert exercise.outcome != "passed" and exercise.points < exercise.out_of, told


@pytest.mark.soak
@pytest.mark.usefixtures("plan")
@pytest.mark.timeout(4 * 3600)
def test_grades_thousand_learners_despite_kills(tmp_path: Path) -> None:
    """Kill the run three times, with all its processes, and run it again."""
    count = int(os.environ.get("REAL_RANKS_CLASS", "1000"))
    expected = make_class(tmp_path / "class", count)
    answers = sum(len(each.passes) for each in expected)
    parts = [graded(tmp_path / "class", tmp_path / "out", count * 0.5) for _ in range(3)]
    before = len(read_records(tmp_path / "out"))
    parts.append(graded(tmp_path / "class", tmp_path / "out", 3 * 3600))
    assert_as_expected(tmp_path / "out", expected)
    seconds, memory = sum(part for part, _ in parts), max(most for _, most in parts)
    print(
        f"\n{count} submissions, {answers} answers: {seconds:.0f} s, {memory >> 20:,} MB at most; "
        f"{before} records when it was killed for the third time"
    )


@pytest.mark.soak
@pytest.mark.usefixtures("plan")
@pytest.mark.timeout(3600)
def test_grades_class_of_hundred_learners(tmp_path: Path) -> None:
    expected = make_class(tmp_path / "class", 100)
    seconds, memory = graded(tmp_path / "class", tmp_path / "out", 3000)
    assert_as_expected(tmp_path / "out", expected)
    again, _ = graded(tmp_path / "class", tmp_path / "out", 600)
    print(f"\n100 submissions: {seconds:.0f} s, {memory >> 20:,} MB at most; kept: {again:.1f} s")
    command = [
        *COURSE,
        "grade",
        str(tmp_path / "class"),
        "--out",
        str(tmp_path / "out"),
        "--verify",
    ]
    verified = subprocess.run(command, capture_output=True, text=True, timeout=3000)
    assert ": 0 differences." in verified.stdout, verified.stdout
