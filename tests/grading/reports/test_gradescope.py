"""Results for Gradescope, and the zip, which is unpacked and run like on Gradescope."""

from __future__ import annotations

import io
import json
import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Any

import pytest

from helpers.course.workspace import find_workspace
from helpers.grading.grade_options import CannotGrade
from helpers.grading.points.policy import PolicyError, read_policy
from helpers.grading.reports import gradescope
from helpers.grading.reports.gradescope import results_json, write_zip
from helpers.views.failed_case import START
from tests.grading.notebooks import write_notebook
from tests.grading.reports.builders import exercise, fault, record, results, unreadable
from tests.grading.reports.hostile import TEXTS, UNSHOWABLE, hostile_record, unreadable_record

SECRET = "5a1b-the-hidden-secret"
RUN_S = 110.0

ALLOWED = {"score", "execution_time", "output", "output_format", "test_output_format"}
ALLOWED |= {"test_name_format", "visibility", "stdout_visibility", "tests"}
ALLOWED_IN_TEST = {"name", "number", "score", "max_score", "status", "output"}
ALLOWED_IN_TEST |= {"output_format", "visibility"}


def shown_to_learners(given: dict[str, Any]) -> str:
    tests = [test for test in given["tests"] if test["visibility"] == "visible"]
    return json.dumps({**given, "tests": tests})


def test_reports_scores_outputs_and_status() -> None:
    given = results([record("Ada", exercise("ping_pong"), exercise("token_ring", "wrong"))])
    assert given.keys() == ALLOWED and given["score"] == 14 and given["output_format"] == "text"
    first, second = given["tests"]
    assert (first["name"], first["number"], first["status"]) == ("2.1 Ping-pong", "2.1", "passed")
    assert (second["score"], second["max_score"], second["status"]) == (4.0, 10.0, "failed")
    assert f"{START} Rank 1 kept" in second["output"] and "271828" not in json.dumps(given)
    assert all(test.keys() <= ALLOWED_IN_TEST for test in given["tests"])


def test_instructor_notes_stay_hidden_from_learners() -> None:
    flagged = exercise("ping_pong", flags=("traffic does not match: look",))
    given = results([record("Ada", flagged, fault("token_ring")), unreadable("Ada")])
    assert given["stdout_visibility"] == "hidden"
    (hidden,) = [test for test in given["tests"] if test["visibility"] == "hidden"]
    assert "traffic does not match: look" in hidden["output"] and "SIGKILL" in hidden["output"]
    assert "traffic" not in shown_to_learners(given) and "SIGKILL" not in shown_to_learners(given)
    assert "line 3, column 7: this is not valid JSON" in given["output"]


def test_grading_fault_costs_no_points() -> None:
    given = results([record("Ada", exercise("ping_pong"), fault("token_ring"))])
    assert given["score"] == 20
    faulty = given["tests"][1]
    assert faulty["score"] == faulty["max_score"] == 10 and "status" not in faulty


@pytest.mark.parametrize("name", TEXTS)
def test_hostile_records_give_short_plain_text(name: str) -> None:
    data = results_json([hostile_record(TEXTS[name]), unreadable_record(TEXTS[name])])
    assert data.isascii() and len(data) < 400_000
    given = json.loads(data)
    assert len(given["tests"]) == 7 and given["score"] == 30
    for text in (given["output"], *(test["output"] for test in given["tests"])):
        assert not UNSHOWABLE.search(text)
    assert {test["output_format"] for test in given["tests"]} == {"text"}


def test_missing_submission_has_score_0() -> None:
    assert results([])["score"] == 0 and "There is nothing to grade" in results([])["output"]


NAMED = ["00_start_here", "04_collectives"]


@pytest.fixture(scope="module")
def archive() -> zipfile.ZipFile:
    target = io.BytesIO()
    write_zip(target, find_workspace().root, SECRET, notebooks=NAMED)
    again = io.BytesIO()
    write_zip(again, find_workspace().root, SECRET, notebooks=NAMED)
    assert target.getvalue() == again.getvalue()
    return zipfile.ZipFile(target)


@pytest.mark.extended
def test_zip_contains_gradescope_files_and_secret(archive: zipfile.ZipFile) -> None:
    names = archive.namelist()
    assert {"setup.sh", "run_autograder", "secret"} < set(names) and len(names) == len(set(names))
    assert "course/solutions/02_blocking_p2p.ipynb" in names and "course/pyproject.toml" in names
    assert "course/helpers/grading/reports/templates/learner.html" in names
    assert not [name for name in names if "__pycache__" in name or ".." in name]
    with_secret = [name for name in names if SECRET.encode() in archive.read(name)]
    assert with_secret == ["secret"]
    modes = {name: archive.getinfo(name).external_attr >> 16 for name in names}
    assert modes["secret"] & 0o777 == 0o600
    assert modes["setup.sh"] & modes["run_autograder"] & 0o111 == 0o111
    assert sum(archive.getinfo(name).compress_size for name in names) < 5_000_000


def test_policy_weights_determine_score(tmp_path: Path) -> None:
    policy = tmp_path / "policy.toml"
    policy.write_text("[weight]\nping_pong = 30\n")
    target = io.BytesIO()
    write_zip(target, find_workspace().root, SECRET, NAMED, policy)
    assert zipfile.ZipFile(target).read("policy.toml") == policy.read_bytes()
    given = gradescope.gradescope_results(
        [record("Ada", exercise("ping_pong"))], (), read_policy(policy)
    )
    assert given["score"] == given["tests"][0]["max_score"] == 30.0
    policy.write_text("[weight]\nping_pang = 30\n")
    with pytest.raises(PolicyError, match="line 2"):
        write_zip(io.BytesIO(), find_workspace().root, SECRET, NAMED, policy)


@pytest.mark.parametrize("secret", ["", "abc", f"{SECRET}\n{SECRET}"])
def test_refuses_unusable_secret(secret: str) -> None:
    with pytest.raises(CannotGrade):
        write_zip(io.BytesIO(), find_workspace().root, secret)


@pytest.fixture
def autograder(tmp_path: Path, archive: zipfile.ZipFile) -> Path:
    """Unpack the zip like Gradescope, but into a folder other than /autograder."""
    source = tmp_path / "autograder" / "source"
    for entry in archive.infolist():
        target = Path(archive.extract(entry, source))
        target.chmod(entry.external_attr >> 16 & 0o777)
    shutil.copy(source / "run_autograder", source.parent)
    (source.parent / "submission").mkdir()
    return source.parent


def run(autograder: Path, script: str, **settings: str) -> subprocess.CompletedProcess[str]:
    env = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    env |= {"AUTOGRADER": str(autograder), "COURSE_PYTHON": sys.executable, **settings}
    command = [str(autograder / script)]
    return subprocess.run(command, env=env, capture_output=True, text=True, timeout=RUN_S)


@pytest.mark.parametrize("script", ["setup.sh", "run_autograder"])
def test_autograder_scripts_are_valid_bash(autograder: Path, script: str) -> None:
    checked = subprocess.run(
        ["bash", "-n", str(autograder / "source" / script)], capture_output=True, timeout=RUN_S
    )
    assert checked.returncode == 0, checked.stderr


@pytest.mark.extended
def test_autograder_grades_submission(autograder: Path) -> None:
    notebook = "00_start_here.ipynb"
    shutil.copy(find_workspace().solutions / notebook, autograder / "submission" / notebook)
    stray = "07_data_partitioning.ipynb"  # not one of the class's, so it does not count
    shutil.copy(find_workspace().notebooks / stray, autograder / "submission" / stray)
    (autograder / "results").mkdir()
    (autograder / "results" / "results.json").write_text("of an earlier run")
    done = run(autograder, "run_autograder")
    assert done.returncode == 0 and "Traceback" not in done.stderr, done.stdout + done.stderr
    text = (autograder / "results" / "results.json").read_text()
    given = json.loads(text)
    assert given["score"] == sum(test.get("max_score", 0) for test in given["tests"]) > 0, text
    *verdicts, look = given["tests"]
    assert {test["status"] for test in verdicts} == {"passed"}
    assert f"{stray}: another notebook" in look["output"]
    assert SECRET not in text and SECRET not in done.stdout + done.stderr
    assert not list((autograder / "submission").glob("*.json"))


@pytest.mark.extended
def test_reports_submission_without_notebook(autograder: Path) -> None:
    (autograder / "submission" / "essay.txt").write_text("x")
    done = run(autograder, "run_autograder")
    assert done.returncode == 0
    given = json.loads((autograder / "results" / "results.json").read_text())
    assert given["score"] == 0 and "not a notebook" in given["output"]


@pytest.mark.extended
@pytest.mark.parametrize("name", ["", "README.md"], ids=["empty", "readme"])
def test_empty_submission_has_score_0(autograder: Path, name: str) -> None:
    if name:
        (autograder / "submission" / name).write_text("x")
    done = run(autograder, "run_autograder")
    assert done.returncode == 0, done.stderr
    given = json.loads((autograder / "results" / "results.json").read_text())
    assert given["score"] == 0 and "no notebook" in given["output"]


ONE_ANSWER = """def my_slice(rank, world_size, n):
    share, extra = divmod(n, world_size)
    start = rank * share + min(rank, extra)
    return start, start + share + (1 if rank < extra else 0)
"""


@pytest.mark.extended
@pytest.mark.parametrize("ending", [".ipynb.json", ".IPYNB", ".ipynb.txt", ".json"])
def test_notebook_earns_points_under_any_name(autograder: Path, ending: str) -> None:
    write_notebook(autograder / "submission" / f"00_start_here{ending}", ONE_ANSWER)
    done = run(autograder, "run_autograder")
    assert done.returncode == 0, done.stderr
    given = json.loads((autograder / "results" / "results.json").read_text())
    assert given["score"] > 0, given


def test_grading_fault_leaves_no_results(autograder: Path) -> None:
    (autograder / "submission" / "a.ipynb").write_text("{}")
    (autograder / "results").mkdir()
    (autograder / "results" / "results.json").write_text('{"score": 99}')
    done = run(autograder, "run_autograder", COURSE_PYTHON="/nowhere/python")
    assert done.returncode != 0 and "there are no results" in done.stderr
    assert not (autograder / "results" / "results.json").exists()


def test_failed_grader_leaves_no_results(autograder: Path) -> None:
    """Python exits with 1 after an uncaught error, like `course grade` for an unreadable file."""
    (autograder / "submission" / "a.ipynb").write_text("{}")
    python = autograder / "python"
    python.write_text(
        f'#!/bin/sh\n[ "$2" = helpers.course.cli ] && exit 1\nexec {sys.executable} "$@"\n'
    )
    python.chmod(0o755)
    done = run(autograder, "run_autograder", COURSE_PYTHON=str(python))
    assert done.returncode != 0 and "there are no results" in done.stderr
    assert not (autograder / "results" / "results.json").exists()
