"""Test hints: they are shown one by one, and the solution is named only after the last hint or a pass."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

from helpers.checks.headings import Heading
from helpers.course.cli import main
from helpers.course.hints import Hints, hint, next_button
from helpers.course.progress import read_progress, record_score
from helpers.course.show_message import to_plain
from helpers.course.workspace import Workspace

EXERCISES = {
    "token_ring": Heading(
        "token_ring",
        "02_blocking_p2p",
        "2.2",
        "Token ring",
        hints=("Who starts?", "Rank 0 sends.", "`send` first."),
    ),
    "tagged_mail": Heading("tagged_mail", "02_blocking_p2p", "2.4", "Tagged mail"),
}


@pytest.fixture(autouse=True)
def own_progress(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("REAL_RANKS_PROGRESS", str(tmp_path / "progress.json"))


def ask(name: str = "token_ring") -> str:
    return repr(hint(name, get=EXERCISES.__getitem__))


def test_each_call_adds_one_hint() -> None:
    assert ask() == "**Exercise 2.2: Token ring**: hint 1 of 3.\n\n1. Who starts?"
    assert ask().endswith("hint 2 of 3.\n\n1. Who starts?\n\n2. Rank 0 sends.")
    third = ask()
    assert "hint 3 of 3.\n\n1. Who" in third and "3. `send` first.\n\nThe solution is in " in third
    assert third.endswith(
        "`from helpers import show_me; show_me('token_ring')` shows it next to yours."
    )
    again = ask()
    assert "that was the last of 3 hints." in again and "3. `send` first." in again
    assert read_progress().hints == {"token_ring": 3}


@pytest.mark.parametrize("outcome", ["wrong", "passed"])
def test_only_last_hint_mentions_solution(outcome: str) -> None:
    record_score("token_ring", outcome, 2, 2)
    assert ["solutions/" in ask() for _ in range(3)] == [False, False, True]


def test_reports_missing_hints() -> None:
    said = ask("tagged_mail")
    assert said.startswith("**Exercise 2.4: Tagged mail** has no hints.")
    assert read_progress().hints == {}


def test_unknown_exercise_raises_key_error() -> None:
    with pytest.raises(KeyError):
        ask("no_such")


def test_unsaved_progress_adds_note_to_hint(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("REAL_RANKS_PROGRESS", "/proc/nowhere/progress.json")
    assert "1. Who starts?" in ask() and "could not be saved" in ask()


def test_hint_shows_same_markdown_and_text() -> None:
    told = hint("token_ring", get=EXERCISES.__getitem__)
    assert told._repr_markdown_() == repr(told) == str(told)


def test_finds_exercise_by_every_identifier() -> None:
    def token_ring() -> None: ...

    assert "hint 1 of 3" in repr(hint("token_ring"))
    assert "hint 2 of 3" in repr(hint("2.2"))
    assert "hint 3 of 3" in repr(hint(token_ring))


@pytest.mark.parametrize("odd", [3, None, "", "tokenring", ["x"]])
def test_refuses_unknown_exercises(odd: object) -> None:
    with pytest.raises(LookupError, match="no exercise is called"):
        hint(odd)


def test_last_hint_adapts_to_missing_solutions(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("helpers.course.hints.find_workspace", lambda: Workspace(tmp_path))
    assert [ask() for _ in range(3)][-1].endswith("has the solution.")


def test_button_shows_next_hint() -> None:
    hints = hint("token_ring", get=EXERCISES.__getitem__)
    assert isinstance(hints, Hints)
    shown: list[str] = []
    button = next_button(hints, lambda told: shown.append(told.text), lambda: shown.append("gone"))
    button.click()
    assert "2. Rank 0 sends." in shown[-1]
    button.click()
    assert "`send` first." in shown[-2] and shown[-1] == "gone"
    assert read_progress().hints == {"token_ring": 3}


def test_stored_hints_fall_back_to_markdown() -> None:
    with pytest.raises(NotImplementedError):  # IPython then uses the Markdown
        hint("token_ring", get=EXERCISES.__getitem__)._ipython_display_()


def test_terminals_get_hints_as_plain_text(monkeypatch: pytest.MonkeyPatch) -> None:
    told = "**Exercise 0.1: One**: hint 1 of 1.\n\n1. Call `send`:\n\n```python\na = `b`\n```\n"
    plain = "Exercise 0.1: One: hint 1 of 1.\n\n1. Call send:\n\n    a = `b`\n"
    assert to_plain(told) == plain
    done = CliRunner().invoke(main, ["hint", "0.1"])
    assert done.exit_code == 0 and "hint 1 of" in done.output
    assert not {"`", "*"} & set(done.output)
