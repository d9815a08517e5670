"""Test that a cell with `%%after` runs once its exercises have passed, and names them until then."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from IPython.core.interactiveshell import InteractiveShell
from traitlets.config import Config

from helpers.course import after_magic


@pytest.fixture
def shell() -> Iterator[InteractiveShell]:
    settings = Config()
    settings.HistoryManager.enabled = False  # the history would keep its database open
    shell = InteractiveShell(config=settings)
    after_magic.register(shell)
    # Another test may have recorded a pass of these exercises
    for name in ("count_votes", "my_slice"):
        after_magic.remember_result(name, passed=False)
    yield shell
    for name in ("count_votes", "my_slice"):
        after_magic.remember_result(name, passed=False)


def run(shell: InteractiveShell, cell: str) -> object:
    done = shell.run_cell(cell)
    done.raise_error()
    return done.result


def test_cell_shows_notice_until_exercise_passes(shell: InteractiveShell) -> None:
    shown = run(shell, "%%after count_votes\nrun_at_once = True")
    assert repr(shown) == (
        "This cell uses your own answer. It runs once Exercise 0.1 (Count the votes) has passed. If that "
        "was before you restarted the kernel, choose Run → Run All Above Selected Cell."
    )
    assert "run_at_once" not in shell.user_ns


def test_cell_waits_for_all_named_exercises(shell: InteractiveShell) -> None:
    after_magic.remember_result("count_votes", passed=True)
    assert "Exercise 0.2 (My slice) has passed" in repr(
        run(shell, "%%after count_votes my_slice\n1")
    )
    after_magic.remember_result("my_slice", passed=True)
    assert run(shell, "%%after count_votes my_slice\n1 + 1") == 2


def test_cell_waits_again_after_failed_attempt(shell: InteractiveShell) -> None:
    after_magic.remember_result("count_votes", passed=True)
    after_magic.remember_result("count_votes", passed=False)
    assert isinstance(run(shell, "%%after count_votes\n1"), after_magic.WaitingCell)


def test_traceback_lines_count_from_cell_start(shell: InteractiveShell) -> None:
    after_magic.remember_result("count_votes", passed=True)
    with pytest.raises(ZeroDivisionError) as raised:
        run(shell, "%%after count_votes\nx = 1\nx / 0")
    assert raised.traceback[-1].lineno == 2  # lines are counted from 0


def test_second_magic_may_follow_first(shell: InteractiveShell) -> None:
    after_magic.remember_result("count_votes", passed=True)
    run(shell, "%%after count_votes\n%%capture caught\nprint('hidden')")
    assert shell.user_ns["caught"].stdout == "hidden\n"


def test_unknown_exercise_error_suggests_name(shell: InteractiveShell) -> None:
    with pytest.raises(
        NameError, match="no exercise is called 'count_vote'. Did you mean count_votes"
    ):
        run(shell, "%%after count_vote\n1")
