"""docs/json.md lists exactly the fields that `course run` and `course explain` print."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from helpers.course.cli import main

ROOT = Path(__file__).parents[2]
CASES = ROOT / "tests" / "dumps" / "cases"
HANG = (
    "import torch.distributed as dist\ndist.init_process_group()\n"
    "def save():\n    dist.barrier()\n"
    "if dist.get_rank() == 0:\n    save()\n"
)
SILENT = (
    "import os, torch\ntorch.manual_seed(int(os.environ['RANK']))\n"
    "w = torch.nn.Parameter(torch.zeros(9))\noptimizer = torch.optim.SGD([w], lr=0.1)\n"
    "for _ in range(5):\n    w.grad = torch.randn(9)\n    optimizer.step()\n"
)
OUTCOMES = {"passed", "failed", "died", "deadlock", "timeout"}


def printed(command: str, *words: object) -> dict[str, Any]:
    result = CliRunner().invoke(main, [command, "--json", *map(str, words)])
    return dict(json.loads(result.stdout))


def names_in(data: Any) -> Iterator[str]:
    """Yield all keys, including those of nested objects."""
    for value in (
        data.values() if isinstance(data, dict) else data if isinstance(data, list) else ()
    ):
        yield from names_in(value)
    if isinstance(data, dict):
        yield from data


def names_on_page(row: str) -> set[str]:
    (line,) = [
        line
        for line in (ROOT / "docs" / "json.md").read_text().splitlines()
        if line.startswith(f"| `{row}`")
    ]
    return set(re.findall(r"`([^`]+)`", line.partition(" | ")[2])) | {"format"}


def test_page_lists_fields_of_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    found = set()
    for text in (HANG, SILENT):
        (tmp_path / "train.py").write_text(text)
        data = printed("run", "--check-steps", 3, "train.py")
        assert data["outcome"] in OUTCOMES and (data["waits"] or data["findings"])
        found |= set(names_in(data))
    assert names_on_page("course run train.py") - OUTCOMES - {"--check-steps"} == found


def test_page_lists_fields_of_explain() -> None:
    data = printed("explain", CASES / "gloo_missing_call")
    assert names_on_page("course explain DUMPS") == set(names_in(data))


@pytest.mark.parametrize(("command", "code"), [("run", 4), ("explain", 1)])
def test_missing_path_error_has_exit_code(tmp_path: Path, command: str, code: int) -> None:
    result = CliRunner().invoke(main, [command, "--json", str(tmp_path / "none.py")])
    data = json.loads(result.stdout)
    assert set(data) == {"format", "exit_code", "error"}
    assert result.exit_code == data["exit_code"] == code
