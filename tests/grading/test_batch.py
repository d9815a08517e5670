"""A folder with any content is graded; a killed run continues; two runs have the same results."""

from __future__ import annotations

import json
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from helpers.grading.record import read_records
from tests.grading.notebooks import HANGS, RIGHT, WRONG, write_notebook

pytestmark = pytest.mark.usefixtures("plan")
COURSE = [sys.executable, "-m", "helpers.course.cli"]


def make_class(folder: Path) -> Path:
    for learner, cell in (("anna", RIGHT), ("bela", WRONG), ("cyd", HANGS)):
        write_notebook(folder / learner / "02_blocking_p2p.ipynb", cell)
    (folder / "dora.ipynb").write_text('{"cells": 3')
    return folder


def grade(folder: Path, out: Path, *options: str) -> subprocess.CompletedProcess[str]:
    command = [*COURSE, "grade", str(folder), "--out", str(out), *options]
    return subprocess.run(command, capture_output=True, text=True, timeout=230)


def points(out: Path) -> dict[str, float]:
    return {record.learner: record.points for record in read_records(out)}


@pytest.mark.extended
def test_regrading_class_finds_no_difference(tmp_path: Path) -> None:
    folder, out = make_class(tmp_path / "class"), tmp_path / "out"
    done = grade(folder, out)
    assert done.returncode == 1, done.stderr  # a person needs to check an unreadable file
    assert "3 of 4 submissions graded; 1 cannot be read." in done.stdout
    assert points(out) == {"anna": 10.0, "bela": 0.0, "cyd": 0.0, "dora": 0.0}
    assert (out / "class.html").is_file()
    assert (
        stat.S_IMODE(out.stat().st_mode) == 0o700
    )  # private whatever the umask, because it contains a class's answers
    lines = (out / "log.jsonl").read_text().splitlines()
    assert sorted(json.loads(line)["learner"] for line in lines) == ["anna", "bela", "cyd", "dora"]

    columns = "learner,exercise,points,reason,by,when\n"
    (out / "overrides.csv").write_text(f"{columns}bela,2.1,1.5,shown orally,a tutor,2026-10-20\n")
    kept = (out / "records").stat().st_mtime_ns
    again = grade(folder, out)
    assert "3 of 4 submissions graded" in again.stdout
    logged = (out / "log.jsonl").read_text().splitlines()[4:]
    assert [json.loads(line)["learner"] for line in logged] == ["dora"]
    assert kept <= (out / "records").stat().st_mtime_ns
    assert "1 grade moved" in again.stdout and "shown orally" in (out / "changes.csv").read_text()
    assert points(out)["bela"] == 0.0  # the record describes the actual result
    assert "\nbela,1.5," in (out / "gradebook.csv").read_text()

    verified = grade(folder, out, "--verify")
    assert "Graded 4 submissions again: 0 differences." in verified.stdout
    assert verified.returncode == 0


@pytest.mark.soak
def test_reports_describe_counting_copy(tmp_path: Path) -> None:
    folder, out = tmp_path / "class", tmp_path / "out"
    write_notebook(folder / "anna" / "02_blocking_p2p.ipynb", RIGHT)
    write_notebook(folder / "anna" / "old 02_blocking_p2p.ipynb", WRONG)
    stale = out / "answers" / "bela-0000000000" / "ping_pong.py"
    stale.parent.mkdir(parents=True)
    stale.write_text("def ping_pong(): ...")
    done = grade(folder, out, "--github")
    (answer,) = (path for path in (out / "answers").rglob("*.py") if path.stem == "ping_pong")
    assert "ball += 1" in answer.read_text()
    assert "::error" in done.stdout and "02_blocking_p2p.ipynb" in done.stdout
    assert "old 02" not in "".join(x for x in done.stdout.splitlines() if x.startswith("::"))
    again = grade(folder, out, "--again", "--json")
    assert "2 of 2 submissions graded." in again.stderr and not (out / "changes.csv").exists()
    told = json.loads(again.stdout)
    assert [each["learner"] for each in told["learners"]] == ["anna"] and told["exit_code"] == 0
    assert len((out / "log.jsonl").read_text().splitlines()) == 4


@pytest.mark.extended
@pytest.mark.parametrize(
    "what", ["no folder", "empty", "out is a file", "out within", "roster", "policy", "sandbox"]
)
def test_bad_input_prints_one_error_line(tmp_path: Path, what: str) -> None:
    folder, out, options = make_class(tmp_path / "class"), tmp_path / "out", []
    if what == "no folder":
        folder = tmp_path / "nowhere"
    elif what == "empty":
        folder = tmp_path / "empty"
        folder.mkdir()
    elif what == "out is a file":
        out.write_text("")
    elif what == "out within":
        out = folder / "results"
    elif what == "roster":
        options = ["--roster", str(tmp_path / "none.csv")]
    elif what == "policy":
        options = ["--policy", str(tmp_path / "none.toml")]
    else:
        options = ["--sandbox", "landlocked"]
    done = grade(folder, out, *options)
    assert done.returncode == 2
    assert len(done.stderr.strip().splitlines()) == (4 if what == "sandbox" else 1), done.stderr
    assert "Traceback" not in done.stderr
