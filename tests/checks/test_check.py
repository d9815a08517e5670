"""`check` in a notebook: what it returns in addition to the verdict."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import pytest

from helpers.checks.check import check
from helpers.checks.result import Outcome
from helpers.views.verdict import verdict_text
from tests.grading.notebooks import IMPORTS, RIGHT

CELLS = [
    "",
    "def words(rank, world_size):\n    return f'Hello from rank {rank} of {world_size}'\n",
    "def hello_rank(rank, world_size):\n    return words(rank, world_size)\n",
]


def test_the_source_of_an_answer_stands_alone_with_the_helpers_that_it_uses(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("REAL_RANKS_PROGRESS", str(tmp_path / "progress.json"))
    shell = SimpleNamespace(user_ns={}, history_manager=SimpleNamespace(input_hist_raw=CELLS))
    monkeypatch.setattr("helpers.checks.check.ipython", lambda: shell)
    result = check("hello_rank")
    alone: dict[str, object] = {}
    exec(result.source, alone)
    assert result.passed and eval("hello_rank(1, 4)", alone) == "Hello from rank 1 of 4"
    assert check("token_ring").source == ""


def test_machines_are_needed_to_check_on_machines(monkeypatch: pytest.MonkeyPatch) -> None:
    shell = SimpleNamespace(user_ns={}, history_manager=SimpleNamespace(input_hist_raw=CELLS))
    monkeypatch.setattr("helpers.checks.check.ipython", lambda: shell)
    result = check("hello_rank", where="machines")  # type: ignore[arg-type]
    assert result.outcome is Outcome.UNREADABLE
    assert "where='machines' is not machines: write machines = hosts(...)" in verdict_text(result)


def test_the_arguments_of_the_case_that_failed_can_be_had(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("REAL_RANKS_PROGRESS", str(tmp_path / "progress.json"))
    cells = ["", "def exposed_communication(spans):\n    return -1.0\n"]
    shell = SimpleNamespace(user_ns={}, history_manager=SimpleNamespace(input_hist_raw=cells))
    monkeypatch.setattr("helpers.checks.check.ipython", lambda: shell)
    result = check("exposed_communication")
    (spans,) = result.given
    assert all(len(span) == 3 for span in spans)
    assert "The same call again: exposed_communication(*result.given)" in verdict_text(result)


TRIPLED = IMPORTS + RIGHT.replace("dist.send(ball, dst=0)", "dist.send(ball * 3, dst=0)")


@pytest.mark.parametrize("live", ["0", "1"])
def test_the_run_of_a_case_that_failed_tells_what_tensors_held_to_who_can_step_through_it(
    live: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("REAL_RANKS_PROGRESS", str(tmp_path / "progress.json"))
    monkeypatch.setenv("REAL_RANKS_LIVE", live)
    shell = SimpleNamespace(
        user_ns={}, history_manager=SimpleNamespace(input_hist_raw=["", TRIPLED])
    )
    monkeypatch.setattr("helpers.checks.check.ipython", lambda: shell)
    result = check("ping_pong")
    assert not result.passed and result.run is not None
    held = [event.after for event in result.run.trace if event.op == "recv"]
    assert held and all(bool(text) == (live == "1") for text in held), held
