"""The `course` command, run like a learner's: in a separate process, on a small course."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path
from threading import Timer

import nbformat
import pytest

from helpers.course.notebook_file import read_notebook, write_notebook
from helpers.course.progress import Progress, Score, encode
from helpers.course.workspace import find_workspace
from tests.grading.notebooks import WRONG
from tests.grading.notebooks import write_notebook as write_notebook_of_answers

DEADLINE_S = 100

SOLVED = {
    "cells": [
        {"cell_type": "markdown", "id": "a", "metadata": {}, "source": "## Exercise 2.1: Swap"},
        {
            "cell_type": "code",
            "execution_count": None,
            "id": "b",
            "metadata": {},
            "outputs": [],
            "source": "def swap():\n    ### BEGIN SOLUTION\n    return 1\n    ### END SOLUTION",
        },
        {
            "cell_type": "code",
            "execution_count": None,
            "id": "c",
            "metadata": {},
            "outputs": [],
            "source": "swap() + 1",
        },
    ],
    "metadata": {},
    "nbformat": 4,
    "nbformat_minor": 5,
}


@pytest.fixture
def course(tmp_path: Path, forking_python: str) -> Path:
    """Make a course of one solved notebook, run with this course's code."""
    (tmp_path / "python").symlink_to(forking_python)
    # Copy compiled modules, because compiling them takes a second. While another process writes one, it has
    # a longer name, and may vanish during the copy.
    shutil.copytree(
        find_workspace().root / "helpers",
        tmp_path / "helpers",
        ignore=shutil.ignore_patterns("*.pyc.*"),
    )
    shutil.copy(find_workspace().root / "pyproject.toml", tmp_path)
    (tmp_path / "solutions").mkdir()
    write_notebook(tmp_path / "solutions" / "02_topic.ipynb", SOLVED)
    return tmp_path


@pytest.fixture
def learner(course: Path) -> Path:
    """Add a learner's folder with notebook 00, solved."""
    (course / "work").mkdir()
    shutil.copy(find_workspace().solutions / "00_start_here.ipynb", course / "work")
    return course


def run(course: Path, *words: str) -> subprocess.CompletedProcess[str]:
    env = os.environ | {"REAL_RANKS_PROGRESS": str(course / "progress.json")}
    # checks need torch, whose import takes seconds in a new interpreter
    python = str(course / "python") if words[0] in {"check", "outputs"} else sys.executable
    return subprocess.run(
        [python, "-m", "helpers.course.cli", *words],
        cwd=course,
        env=env,
        capture_output=True,
        text=True,
        timeout=DEADLINE_S,
    )


@pytest.mark.extended
def test_build_outputs_and_reset_work_together(course: Path) -> None:
    built = run(course, "build")
    assert (built.returncode, built.stdout) == (0, "notebooks/02_topic.ipynb\n")
    learner = course / "notebooks" / "02_topic.ipynb"
    assert "NotImplementedError" in learner.read_text()

    stored = run(course, "outputs", "2")
    assert stored.returncode == 0, stored.stderr
    assert not stored.stderr  # no kernel warns about its connection
    cells = read_notebook(course / "solutions" / "02_topic.ipynb")["cells"]
    assert cells[2]["outputs"][0]["data"]["text/plain"] == ["2"]
    before = learner.read_bytes()
    run(course, "build")
    assert learner.read_bytes() == before

    fresh = run(course, "reset", "02")
    assert fresh.stdout.startswith("work/02_topic.ipynb has its original state again.")
    assert "before-reset-1.ipynb" in run(course, "reset", "02").stdout


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["reset", "9"], "No notebook '9'. Available: none yet."),
        (["outputs", "9"], "No notebook '9'. Available: 02_topic."),
        (["hint", "no_such_exercise"], "no exercise is called 'no_such_exercise'"),
    ],
)
def test_errors_print_one_line_without_traceback(course: Path, words: list[str], said: str) -> None:
    done = run(course, *words)
    assert done.returncode == 1
    assert done.stderr.startswith("Error: ") and said in done.stderr
    assert "Traceback" not in done.stderr


def test_build_reports_malformed_solution(course: Path) -> None:
    path = course / "solutions" / "02_topic.ipynb"
    path.write_text(path.read_text().replace("### END SOLUTION", ""))
    done = run(course, "build")
    assert done.returncode == 1
    assert "Error: 02_topic.ipynb, cell 2: line 2: '### BEGIN SOLUTION' without" in done.stderr


def test_progress_command_prints_next_step(course: Path) -> None:
    done = run(course, "progress")
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("Next: ") and "DDP in an evening" in done.stdout


@pytest.mark.extended
def test_progress_command_writes_page(course: Path) -> None:
    done = run(course, "progress", "--html", "can_do.html")
    assert done.stdout == "Open can_do.html in a browser.\n", done.stderr
    assert "What I can do now" in (course / "can_do.html").read_text(encoding="utf-8")
    failed = run(course, "progress", "--html", "missing/can_do.html")
    assert failed.returncode == 2 and "missing/can_do.html cannot be written" in failed.stderr


@pytest.mark.extended
def test_standard_output_contains_only_json(course: Path) -> None:
    progress = json.loads(run(course, "progress", "--json").stdout)
    assert progress["format"] == 1 and len(progress["exercises"]) > 100
    assert {x["attempts"] for x in progress["exercises"]} == {None} and progress["quizzes"] == {}
    notebook = write_notebook_of_answers(course / "02_blocking_p2p.ipynb", WRONG)
    done = run(course, "check", str(notebook), "--only", "ping_pong", "--json")
    (exercise,) = json.loads(done.stdout)["exercises"]
    assert done.returncode == 1 and exercise["outcome"] == "wrong", done.stderr
    first, *_ = (case for case in exercise["cases"] if case["outcome"] == "wrong")
    assert first["ranks"][0].keys() >= {"rank", "given", "expected", "got"}


@pytest.mark.sample(1)
@pytest.mark.parametrize(
    ("words", "code"),
    [
        (("check", "x.ipynb"), 2),
        (("check", "y.ipynb", "--only", "no_such_exercise"), 1),
        (("grade", "no_such_folder", "--out", "results"), 2),
    ],
)
def test_json_errors_print_one_object(course: Path, words: tuple[str, ...], code: int) -> None:
    (course / "x.ipynb").write_text("{")
    (course / "y.ipynb").write_text('{"cells": [], "metadata": {}, "nbformat": 4}')
    done = run(course, *words, "--json")
    said = json.loads(done.stdout)
    assert done.returncode == said["exit_code"] == code
    assert said["error"] in done.stderr and "\n" not in said["error"]


@pytest.mark.parametrize("encoding", ["ascii", "latin-1"])
def test_replaces_marks_unsupported_by_encoding(
    course: Path, monkeypatch: pytest.MonkeyPatch, encoding: str
) -> None:
    monkeypatch.setenv("PYTHONIOENCODING", encoding)
    done = run(course, "progress")
    assert done.returncode == 0 and "UnicodeEncodeError" not in done.stderr


def test_full_disk_exits_with_code_2(course: Path) -> None:
    if not Path("/dev/full").exists():
        pytest.skip("no /dev/full here")
    words = [sys.executable, "-m", "helpers.course.cli", "progress"]
    with open("/dev/full", "w") as full:
        done = subprocess.run(words, cwd=course, stdout=full, stderr=subprocess.PIPE, text=True)
    assert done.returncode == 2 and "Traceback" not in done.stderr
    assert "No space left on device" in done.stderr


@pytest.mark.extended
def test_lab_copies_notebooks_and_passes_arguments(course: Path) -> None:
    run(course, "build")
    allow_root = ["--allow-root"] if os.geteuid() == 0 else []
    done = run(course, "lab", "--version", *allow_root)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == [
        "Copied into work: 02_topic.ipynb",
        version("jupyterlab"),
    ]
    assert run(course, "lab", "--version", *allow_root).stdout.splitlines() == [
        version("jupyterlab")
    ]
    home = nbformat.read(course / "work" / "home.ipynb", 4)
    nbformat.validate(home)
    assert "Your next step" in home.cells[1].outputs[0].data["text/html"]


@pytest.mark.extended
@pytest.mark.skipif(os.geteuid() != 0, reason="only root is warned")
def test_lab_warns_of_running_as_root(course: Path) -> None:
    done = run(course, "lab", "--version")
    assert done.returncode == 0, done.stderr
    assert "as root" in done.stdout and version("jupyterlab") in done.stdout


def test_missing_solutions_message_suggests_whole_project(course: Path) -> None:
    shutil.rmtree(course / "solutions")
    done = run(course, "build")
    assert done.returncode == 1
    assert "Get the whole project and run `make lab`" in done.stderr


@pytest.mark.extended
def test_printed_lab_url_opens_home(course: Path) -> None:
    run(course, "build")
    process = subprocess.Popen(
        [sys.executable, "-m", "helpers.course.cli", "lab", "--no-browser", "--port=0"],
        cwd=course,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )
    watchdog = Timer(DEADLINE_S, process.kill)
    watchdog.start()
    try:
        assert process.stderr is not None
        url = next(line for line in process.stderr if "http://127.0.0.1" in line)
        assert "/lab/tree/home.ipynb?token=" in url
    finally:
        watchdog.cancel()
        process.terminate()
        process.communicate(timeout=DEADLINE_S)


@pytest.mark.extended
def test_lab_uses_folder_from_environment_variable(
    course: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    own = tmp_path.with_name(f"{tmp_path.name}-own")
    monkeypatch.setenv("REAL_RANKS_WORK", str(own))
    run(course, "build")
    done = run(course, "lab", "--version")
    assert done.returncode == 0, done.stderr
    assert f"You work in {own}." in done.stdout.splitlines()
    assert {path.name for path in own.iterdir()} == {"02_topic.ipynb", "home.ipynb"}
    assert not (course / "work").exists()


@pytest.mark.extended
def test_checking_file_leaves_progress_unchanged(course: Path) -> None:
    notebook = find_workspace().solutions / "00_start_here.ipynb"
    done = run(course, "check", str(notebook), "--only", "0.1")
    assert done.returncode == 0, done.stdout
    assert not (course / "progress.json").exists()


@pytest.mark.extended
@pytest.mark.extended
@pytest.mark.parametrize(
    "words",
    [
        "0",
        *(
            pytest.param(words, marks=pytest.mark.extended)
            for words in ("00", "00_start_here", "work/00_start_here.ipynb")
        ),
    ],
)
def test_check_accepts_notebook_names_and_paths(learner: Path, words: str) -> None:
    done = run(learner, "check", words, "--only", "count_votes")
    assert done.returncode == 0, done.stderr
    assert "Exercise 0.1: Count the votes" in done.stdout
    assert "sandbox" not in done.stdout  # because the notebook belongs to the learner


@pytest.mark.extended
@pytest.mark.extended
@pytest.mark.parametrize(
    "words",
    [
        "0.1",
        *(
            pytest.param(words, marks=pytest.mark.extended)
            for words in ("count_votes", "Count the votes")
        ),
    ],
)
def test_check_accepts_exercises(learner: Path, words: str) -> None:
    done = run(learner, "check", words)
    assert done.returncode == 0 and "1 of 1 exercise passed." in done.stdout, done.stderr


@pytest.mark.extended
def test_check_works_inside_work_folder(learner: Path) -> None:
    env = os.environ | {"PYTHONPATH": str(learner)}
    words = ("check", "00_start_here.ipynb", "--only", "0.1")
    command = [str(learner / "python"), "-m", "helpers.course.cli", *words]
    done = subprocess.run(command, cwd=learner / "work", env=env, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.extended
def test_foreign_notebook_check_mentions_missing_sandbox(learner: Path) -> None:
    other = learner / "inbox" / "00_start_here.ipynb"
    other.parent.mkdir()
    shutil.copy(learner / "work" / other.name, other)
    done = run(learner, "check", str(other), "--only", "0.1")
    assert "These answers ran without a sandbox" in done.stdout.splitlines()[-1]


@pytest.mark.sample(2)
@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("02", "work/02_blocking_p2p.ipynb does not exist. `course lab` copies it there."),
        ("inbox/00_start_here.ipynb", "inbox/00_start_here.ipynb does not exist: check the path."),
        ("x.ipynb", "x.ipynb does not exist: check the path."),
        ("count_vote", "no exercise is called 'count_vote'. Did you mean count_votes"),
    ],
)
def test_check_reports_missing_file_or_exercise(learner: Path, words: str, said: str) -> None:
    done = run(learner, "check", words)
    assert done.returncode == 2 and said in done.stdout


@pytest.mark.sample(2)
@pytest.mark.parametrize("words", ["0.2", "my_slice", "00", "work/00_start_here.ipynb"])
def test_hint_accepts_exercises_and_notebooks(learner: Path, words: str) -> None:
    passed = Score("passed", 10, 10, "2026-01-01T00:00:00Z")
    progress = Progress().with_score("count_votes", passed)
    (learner / "progress.json").write_text(encode(progress))
    assert "Exercise 0.2: My slice" in run(learner, "hint", words).stdout


def test_reset_of_exercise_suggests_notebook(learner: Path) -> None:
    done = run(learner, "reset", "count_votes")
    assert done.returncode == 1 and "give its number: 00." in done.stderr


@pytest.mark.extended
def test_bundle_help_lists_bundled_pages(course: Path) -> None:
    assert "docs" not in run(course, "--help").stdout + run(course, "check", "--help").stdout
    (course / "docs").mkdir()
    (course / "docs" / "engine.md").touch()
    help_text = "".join(run(course, "--help").stdout.split())
    assert "docs/engine.md" in help_text and "Grading" not in help_text
    assert "json.md" not in run(course, "check", "--help").stdout


def test_help_lists_every_command(course: Path) -> None:
    done = run(course, "--help")
    words = ("build", "check", "doctor", "hint", "lab", "outputs", "progress", "reset")
    assert all(f"\n  {word} " in done.stdout for word in words)


def test_lab_help_copies_no_notebooks(course: Path) -> None:
    done = run(course, "lab", "--help")
    assert done.returncode == 0 and "Open the course in JupyterLab" in done.stdout
    assert not (course / "work").exists()


@pytest.mark.extended
def test_rejects_guessable_autograder_secret(course: Path) -> None:
    done = run(course, "gradescope", "autograder.zip", "--secret", "abc")
    assert done.returncode == 2 and "at least 12 characters" in done.stderr
    assert not (course / "autograder.zip").exists()
