"""`check` in a notebook: its results in addition to the verdict."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import nbformat
import pytest

from helpers.answers.build import Answer, build_answer, cell_number
from helpers.check_result import Outcome
from helpers.checks.check import check
from helpers.checks.check_answer import grade
from helpers.checks.check_notebook import grade_notebook
from helpers.checks.registry import get
from helpers.views.verdict import verdict_html, verdict_text
from tests.grading.notebooks import IMPORTS, RIGHT

BOUNDS = "return n * rank // world_size, n * (rank + 1) // world_size"
CELLS = [
    "",
    f"def bounds(rank, world_size, n):\n    {BOUNDS}\n",
    "def my_slice(rank, world_size, n):\n    return bounds(rank, world_size, n)\n",
]


def test_answer_source_includes_used_helpers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("REAL_RANKS_PROGRESS", str(tmp_path / "progress.json"))
    shell = SimpleNamespace(user_ns={}, history_manager=SimpleNamespace(input_hist_raw=CELLS))
    monkeypatch.setattr("helpers.checks.check.ipython", lambda: shell)
    result = check("my_slice")
    alone: dict[str, object] = {}
    exec(result.source, alone)
    assert result.passed and eval("my_slice(1, 4, 8)", alone) == (2, 4)
    assert check("token_ring").source == ""
    assert result.next_step == "Reading a failure"
    assert verdict_text(result).splitlines() == [
        "✓ Exercise 0.2: My slice (10 min, ●●○○○): passed",
        "  ✓ Right in 24 cases on 1, 2, 3, 4 and 7 ranks",
        "  ✓ no communication",
        "  Next: Reading a failure",
    ]
    link = '<a href="00_start_here.ipynb#cell-id=00-40">Reading a failure</a>'
    assert link in verdict_html(result)


def test_check_requires_hosts_object(monkeypatch: pytest.MonkeyPatch) -> None:
    shell = SimpleNamespace(user_ns={}, history_manager=SimpleNamespace(input_hist_raw=CELLS))
    monkeypatch.setattr("helpers.checks.check.ipython", lambda: shell)
    result = check("my_slice", where="machines")  # type: ignore[arg-type]
    assert result.outcome is Outcome.UNREADABLE
    assert (
        "where= needs the object returned by hosts(...), not 'machines'. Write machines = hosts(...)"
        in verdict_text(result)
    )


def test_result_exposes_arguments_of_failed_case(
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


@pytest.mark.sample(1)
@pytest.mark.parametrize("live", ["0", "1"])
def test_failed_case_run_has_tensor_values(
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


@pytest.mark.sample(2)
@pytest.mark.parametrize(
    ("cell", "file", "advice"),
    [
        ("from my_utils import words\n", "my_utils.py", "copy its code into a cell"),
        ("import my_utils\n", "my_utils.py", "copy its code into a cell"),
        ("open('words.txt')\n", "words.txt", "a check starts in an empty folder"),
    ],
)
def test_every_check_kind_hides_neighboring_files(
    cell: str, file: str, advice: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("REAL_RANKS_PROGRESS", str(tmp_path / "progress.json"))
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / file).write_text("words = print\n")
    answer = f"def my_slice(rank, world_size, n):\n    {cell}    {BOUNDS}\n"
    shell = SimpleNamespace(
        user_ns={}, history_manager=SimpleNamespace(input_hist_raw=["", answer])
    )
    monkeypatch.setattr("helpers.checks.check.ipython", lambda: shell)
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(answer)])
    nbformat.write(notebook, tmp_path / "00_start_here.ipynb")
    (by_file,) = grade_notebook(tmp_path / "00_start_here.ipynb", only="my_slice")
    for result in (check("my_slice"), by_file):
        assert result.outcome is Outcome.CRASHED
        assert advice in result.cases[0].advice
    assert Path.cwd() == tmp_path


@pytest.mark.extended
def test_answer_can_inspect_and_compile_functions() -> None:
    source = (
        "import inspect, torch\n"
        "@torch.jit.script\n"
        "def scripted(x: torch.Tensor) -> torch.Tensor:\n"
        "    return x + 1\n"
        "@torch.compile\n"
        "def compiled(x):\n"
        "    return x + 1\n"
        "def words(x):\n"
        "    return x + 1\n"
        "def my_slice(rank, world_size, n):\n"
        "    assert 'x + 1' in inspect.getsource(words)\n"
        "    assert scripted(torch.ones(1)) == compiled(torch.ones(1)) == 2\n"
        f"    {BOUNDS}\n"
    )
    found = build_answer([source], "my_slice")
    assert isinstance(found, Answer)
    result = grade(get("my_slice"), found, cell_number)
    assert result.passed, verdict_text(result)


def test_withholds_advice_fitting_only_one_case() -> None:
    # In a case with large float64 numbers, a missing 1 is as small as a rounding error of float32.
    answer = (
        "import torch.distributed as dist\n"
        "def ping_pong(rank, world_size, ball, rounds):\n"
        "    for _ in range(rounds):\n"
        "        if rank == 0:\n"
        "            dist.send(ball, dst=1)\n"
        "            dist.recv(ball, src=1)\n"
        "        elif rank == 1:\n"
        "            dist.recv(ball, src=0)\n"
        "            dist.send(ball + 1, dst=0)\n"
        "    return ball\n"
    )
    found = build_answer([answer], "ping_pong")
    assert isinstance(found, Answer)
    result = grade(get("ping_pong"), found, cell_number)
    failed = [case for case in result.cases if not case.passed]
    assert result.outcome is Outcome.WRONG and len(failed) > 1
    assert not any("float32" in case.advice for case in failed)
    assert not any(case.advice for case in failed[1:])
