"""The real nbgrader takes the course directory, and gives the points that `course grade` gives."""

from __future__ import annotations

import csv
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from helpers.checks.headings import headings
from helpers.grading.grader import Grader
from helpers.grading.nbgrader import write_course
from helpers.grading.points.policy import effort
from helpers.grading.reports.standing import course_of
from helpers.grading.submissions import find_submissions
from tests.grading.notebooks import RIGHT, WRONG, write_notebook

NAME = "02_blocking_p2p"
BODY = RIGHT.partition("rounds):\n")[2]
SOLVED = RIGHT.replace(BODY, f"    ### BEGIN SOLUTION\n{BODY}    ### END SOLUTION\n")


def nbgrader(folder: Path, *words: str) -> None:
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    done = subprocess.run(
        [sys.executable, "-m", "nbgrader", *words],
        cwd=folder,
        env={**os.environ, "PATH": path, "REAL_RANKS_PROGRESS": str(folder / "progress.json")},
        capture_output=True,
        text=True,
        timeout=200,
    )
    assert done.returncode == 0, done.stderr


@pytest.fixture(scope="module")
def course(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An assignment of one exercise, released by nbgrader, and two submissions."""
    folder = tmp_path_factory.mktemp("nbgrader")
    solved = write_notebook(
        folder / "solutions" / f"{NAME}.ipynb",
        "from helpers import check",
        SOLVED.strip(),
        "result = check(ping_pong)\nresult",
    )
    notebook = json.loads(solved.read_text())
    heading = {"cell_type": "markdown", "id": "h", "metadata": {}, "source": "x"}
    notebook["cells"].insert(2, heading)
    solved.write_text(json.dumps(notebook))
    write_course(solved.parent, folder)
    nbgrader(folder, "generate_assignment", NAME)
    released = json.loads((folder / "release" / NAME / f"{NAME}.ipynb").read_text())
    for learner, answer in (("anna", RIGHT), ("bela", WRONG), ("cyd", None)):
        path = folder / "submitted" / learner / NAME / f"{NAME}.ipynb"
        path.parent.mkdir(parents=True)
        path.write_text(json.dumps(with_answer(released, answer)))
    return folder


def with_answer(notebook: dict[str, Any], answer: str | None) -> dict[str, Any]:
    copy = json.loads(json.dumps(notebook))
    for cell in copy["cells"]:
        if answer is not None and cell["metadata"].get("nbgrader", {}).get("solution"):
            cell["source"] = answer
    return dict(copy)


def test_what_nbgrader_releases_holds_no_solution(course: Path) -> None:
    text = (course / "release" / NAME / f"{NAME}.ipynb").read_text()
    assert "raise NotImplementedError()" in text
    assert "dist.send" not in text


@pytest.mark.soak
def test_nbgrader_gives_the_points_that_the_course_gives(course: Path, grader: Grader) -> None:
    nbgrader(course, "autograde", NAME)
    nbgrader(course, "export", "--to", "grades.csv")
    with (course / "grades.csv").open() as file:
        theirs = {row["student_id"]: float(row["score"]) for row in csv.DictReader(file)}
    jobs = find_submissions(course / "submitted").jobs
    course_of_them = course_of([grader.grade(job) for job in jobs], "")
    ours = {each.learner: each.points for each in course_of_them.standings}
    worth = effort(headings()["ping_pong"])
    assert ours == theirs == {"anna": worth, "bela": 0.0, "cyd": 0.0}


@pytest.mark.soak
def test_nbgrader_validates_a_right_submission(course: Path) -> None:
    nbgrader(course, "validate", f"submitted/anna/{NAME}/{NAME}.ipynb")
