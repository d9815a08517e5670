"""Hostile files, names and folders cost little, and a right answer in them is still found."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from helpers.grading.grader import Grader
from helpers.grading.record import Record, Status
from helpers.grading.submissions import Job, find_submissions
from tests.grading.hostile.notebooks import READABLE, UNREADABLE
from tests.grading.notebooks import RIGHT, write_notebook

NAME = "02_blocking_p2p.ipynb"


def graded(grader: Grader, path: Path) -> Record:
    return grader.grade(Job("mallory", path, path.name))


@pytest.mark.parametrize("what", UNREADABLE)
def test_non_notebook_errors_fit_one_line(lenient: Grader, tmp_path: Path, what: str) -> None:
    path = tmp_path / NAME
    path.write_bytes(UNREADABLE[what]())
    record = graded(lenient, path)
    assert (record.status, record.points) == (Status.UNREADABLE, 0.0)
    assert record.message.startswith(NAME) and "\n" not in record.message


@pytest.mark.extended
def test_finds_answer_among_hostile_cells(lenient: Grader, tmp_path: Path) -> None:
    from helpers.answers.build import Answer
    from helpers.answers.reader import read_answers

    for what, content in READABLE.items():
        path = tmp_path / NAME
        path.write_bytes(content())
        found = read_answers(path, ["ping_pong"])["ping_pong"]
        assert isinstance(found, Answer), (what, found)


@pytest.mark.parametrize(
    "what",
    ["half a surrogate", pytest.param("thousands of shell lines", marks=pytest.mark.soak)],
)
def test_grades_damaged_readable_notebook(lenient: Grader, tmp_path: Path, what: str) -> None:
    path = tmp_path / NAME
    path.write_bytes(READABLE[what]())
    assert graded(lenient, path).points == 10


@pytest.mark.parametrize("kind", ["link", "pipe", "folder", "device"])
def test_opens_only_regular_files(lenient: Grader, tmp_path: Path, kind: str) -> None:
    path = tmp_path / NAME
    if kind == "link":
        path.symlink_to(write_notebook(tmp_path / "x.ipynb", RIGHT))
    elif kind == "device":
        path.symlink_to("/dev/zero")
    elif kind == "pipe":
        os.mkfifo(path)
    else:
        path.mkdir()
    assert graded(lenient, path).status is Status.UNREADABLE


@pytest.mark.extended
def test_never_imports_modules_from_class_folder(
    lenient: Grader, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("json", "torch", "helpers", "socket", "sitecustomize", "ast"):
        (tmp_path / f"{name}.py").write_text("raise SystemExit('planted')")
    monkeypatch.chdir(tmp_path)
    path = write_notebook(tmp_path / NAME, RIGHT)
    assert graded(lenient, path).points == 10


@pytest.mark.parametrize("name", ["a..b", "-rf", "~", "a\nb", "$(id)", "%00", "CON", "x" * 200])
def test_learner_name_is_never_path(tmp_path: Path, name: str) -> None:
    folder = tmp_path / "class"
    write_notebook(folder / name / NAME, RIGHT)
    jobs = find_submissions(folder).jobs
    assert len(jobs) == 1
    assert jobs[0].path.resolve().is_relative_to(folder)
    assert "\n" not in jobs[0].learner and "/" not in jobs[0].learner
