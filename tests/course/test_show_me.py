"""Show the reference next to the learner's answer, with runs of both, if the copy has solutions."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import pytest

from helpers.checks.headings import UnknownExercise
from helpers.course import show_me as module
from helpers.course.progress import read_progress
from helpers.course.show_me import SideBySide, show_me
from helpers.course.show_message import LearnerMessage
from helpers.course.workspace import Workspace

OWN = """\
import torch, torch.distributed as dist

def ping_pong(rank, world_size, ball, rounds):
    return ball
"""


@pytest.fixture
def shell(monkeypatch: pytest.MonkeyPatch) -> None:
    """Provide the inputs of a notebook. tests/browser uses a real one."""
    history = SimpleNamespace(input_hist_raw=["", OWN])
    shell = SimpleNamespace(history_manager=history, user_ns={})
    monkeypatch.setattr("helpers.checks.check.ipython", lambda: shell)
    monkeypatch.setattr(module, "ipython", lambda: shell)


@pytest.mark.usefixtures("shell")
def test_shows_both_answers_and_their_runs() -> None:
    shown = show_me("ping_pong")
    assert isinstance(shown, SideBySide)
    assert shown.own.endswith("return ball") and "SOLUTION" not in shown.reference
    assert "dist.recv(ball" in shown.reference
    assert shown.reference_run is not None and shown.reference_run.ok
    assert "the reference: timeline of" in repr(shown)
    page = shown._repr_html_()
    assert page.count("<pre") == 2 and page.count("<img") >= 1
    assert read_progress().hints["ping_pong"] == 4, (
        "an answer that has not passed: it is shown as a last hint"
    )


def test_reports_copy_without_solutions(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "find_workspace", lambda: Workspace(tmp_path))
    told = show_me("2.1")
    assert isinstance(told, LearnerMessage) and "has no solutions" in repr(told)
    assert read_progress().hints == {}


def test_refuses_unknown_exercise_name() -> None:
    with pytest.raises(UnknownExercise, match="Did you mean ping_pong"):
        show_me("ping_pang")
