"""A limit that ended an answer determines its outcome and message, and matches no known mistake."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from helpers.grading.grader import Grader
from helpers.grading.record import ExerciseRecord
from helpers.grading.reports.class_page import class_page, places_to_look
from helpers.grading.reports.mistakes import frequent_mistakes
from helpers.grading.reports.pages import learner_page
from helpers.grading.reports.standing import course_of
from helpers.grading.sandbox.limits import Limits
from helpers.grading.submissions import Job
from tests.grading.hostile.attack import text_of
from tests.grading.notebooks import write_notebook

_MB = 1 << 20
SMALL = Limits(processes=120, world_bytes=900 * _MB, files=3_000, output_bytes=_MB)
ANSWERS = {
    "memory of all ranks": (
        "kept = []\n    while True:\n        kept.append(torch.ones(1 << 22))",
        "too much memory",
        "used more than",
    ),
    "memory of one rank": ("return torch.zeros(3 << 28).sum()", "too much memory", "out of memory"),
    "processes": (
        "import os, time\n    for _ in range(200):\n        if os.fork() == 0:\n"
        "            time.sleep(30)\n            os._exit(0)\n    time.sleep(20)",
        "too many processes",
        "processes",
    ),
    "threads": (
        "import threading, time\n    for _ in range(300):\n"
        "        threading.Thread(target=time.sleep, args=(30,), daemon=True).start()\n"
        "    time.sleep(20)",
        "too many processes",
        "processes",
    ),
    "disk": (
        "with open(f'/tmp/{rank}', 'wb') as file:\n        while True:\n"
        "            file.write(bytes(1 << 20))",
        "disk full",
        "more data than fits on the disk",
    ),
    "files": (
        "import signal\n    for n in range(9000):\n        open(f'/tmp/{rank}-{n}', 'w').close()\n"
        "    signal.sigtimedwait([signal.SIGUSR1], 20)",
        "too many files",
        "more than 3,000 files",
    ),
    "descriptors": (
        "import os\n    while True:\n        os.open('/dev/null', 0)",
        "too many files",
        "too many files or sockets",
    ),
    "output": ("while True:\n        print('x' * 100_000)", "flooded", "printed too much"),
}

SOON = {"memory of one rank", "threads", "output"}


def graded(grader: Grader, folder: Path, body: str) -> tuple[ExerciseRecord, list[str]]:
    lines: list[str] = []
    cell = f"def ping_pong(rank, world_size, ball, rounds):\n    {body}\n"
    path = write_notebook(folder / "02_blocking_p2p.ipynb", cell)
    small = replace(grader, plan=replace(grader.plan, limits=SMALL), print_line=lines.append)
    record = small.grade(Job("jo", path, path.name))
    course = course_of([record], "Autumn")
    text = learner_page(course, course.standings[0]).decode() + class_page(course).decode()
    assert not [words for words in ("Run the cell", "rank server", "idle") if words in text]
    assert not [each for each in frequent_mistakes(course) if "ball" in each.said]
    limits = [each for each in places_to_look(course) if each[0] == record.exercises[0].outcome]
    assert len(limits) == 1
    return record.exercises[0], lines


@pytest.mark.sample(1)
@pytest.mark.parametrize(
    ("body", "outcome", "words"),
    [
        pytest.param(*answer, id=name, marks=() if name in SOON else pytest.mark.extended)
        for name, answer in ANSWERS.items()
    ],
)
def test_message_describes_exceeded_limit(
    grader: Grader, tmp_path: Path, body: str, outcome: str, words: str
) -> None:
    if grader.plan.level != "bubblewrap":
        pytest.skip("Landlock has no limits of its own for files and the disk")
    exercise, _ = graded(grader, tmp_path, body)
    assert (exercise.outcome, exercise.points) == (outcome, 0.0), text_of(exercise)
    assert words in text_of(exercise)
    assert "recv" not in text_of(exercise).replace(exercise.answer, "")


@pytest.mark.extended
def test_memory_excess_allows_no_retry(grader: Grader, tmp_path: Path) -> None:
    exercise, lines = graded(grader, tmp_path, ANSWERS["memory of all ranks"][0])
    assert exercise.outcome == "too much memory" and not lines


@pytest.mark.extended
@pytest.mark.parametrize(
    "body", ["import helper_of_mine", "open('data.csv')"], ids=["module", "file"]
)
def test_missing_file_allows_no_retry(grader: Grader, tmp_path: Path, body: str) -> None:
    lines: list[str] = []
    cell = f"def ping_pong(rank, world_size, ball, rounds):\n    {body}\n"
    path = write_notebook(tmp_path / "02_blocking_p2p.ipynb", cell)
    record = replace(grader, print_line=lines.append).grade(Job("jo", path, path.name))
    assert record.exercises[0].outcome == "crashed" and not lines
