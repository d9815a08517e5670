"""Answers are written as files for tools that compare programs, only below the results."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from helpers.grading.jplag_files import reference_answers, write_answers
from helpers.grading.reference_health import solutions_folder
from helpers.grading.reports.slugs import page_names
from tests.grading.reports.builders import exercise, record


def written(out: Path) -> dict[str, str]:
    return {
        str(path.relative_to(out)): path.read_text(encoding="utf-8")
        for path in out.rglob("*")
        if path.is_file()
    }


def test_references_match_solved_notebooks() -> None:
    found = reference_answers(["02_blocking_p2p"], solutions_folder())
    assert "def ping_pong" in found["ping_pong"] and len(found) == 5
    assert not reference_answers(["02_blocking_p2p"], None)


def test_writes_learner_folders_with_answer_files(tmp_path: Path) -> None:
    tries = [exercise(answer="def ping_pong(): ..."), exercise("token_ring", answer="")]
    ada = record("Ada", *tries)
    more = replace(
        ada, notebook="05", exercises=(exercise("ring_all_reduce", answer="# mine\nx = 1\n\n"),)
    )
    write_answers([ada, more, record("Bob", tries[0])], tmp_path)
    folder = {name: f"answers/{page.removesuffix('.html')}" for name, page in NAMES.items()}
    assert written(tmp_path) == {
        f"{folder['Ada']}/ping_pong.py": "def ping_pong(): ...\n",
        f"{folder['Ada']}/ring_all_reduce.py": "# mine\nx = 1\n",
        f"{folder['Bob']}/ping_pong.py": "def ping_pong(): ...\n",
    }


NAMES = page_names(["Ada", "Bob"])


def test_removes_answers_of_earlier_run(tmp_path: Path) -> None:
    answered = exercise(answer="x = 1")
    write_answers([record("Ada", answered), record("Bob", answered)], tmp_path)
    note = next(tmp_path.rglob("ada-*")) / "note.txt"
    note.write_text("the instructor's own")
    write_answers([], tmp_path)
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == [note]
    assert not list(tmp_path.rglob("bob-*"))


def test_record_names_never_escape_folder(tmp_path: Path) -> None:
    out = tmp_path / "out"
    bad = replace(exercise(answer="x = 1"), name="../../../stolen")
    write_answers([record("../../etc/passwd", exercise(answer="x = '\ud800'"), bad)], out)
    (path,) = (each for each in tmp_path.rglob("*") if each.is_file())
    assert path.parent.parent == out / "answers" and path.name == "ping_pong.py"
    assert path.read_text(encoding="utf-8") == "x = '?'\n"
