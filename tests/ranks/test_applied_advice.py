"""Each program succeeds after its advice was followed."""

from __future__ import annotations

import linecache
import os
from pathlib import Path
from typing import Any

import pytest
import torch
import torch.distributed as dist

from helpers.ranks.advice import _KNOWN_ERRORS, advice_for
from helpers.ranks.launcher import launch
from helpers.ranks.run import Run
from helpers.trace import departure, diagnosis, joins
from tests.ranks.advised_programs import DIAGNOSES, ERRORS, Advised

pytestmark = [
    pytest.mark.skipif(torch.cuda.is_available(), reason="for machines without a GPU"),
    pytest.mark.usefixtures("preloaded"),
]
PROGRAMS = ERRORS | DIAGNOSES


def run_program(advised: Advised, body: str, folder: Path) -> Run:
    namespace: dict[str, Any] = {"torch": torch, "dist": dist, "os": os, "__name__": "__main__"}
    file = folder / f"file{len([*folder.iterdir()])}"  # not one left by an earlier program
    lines = body.replace("PATH", str(file)).split("\n")
    source = "def f(rank, n):\n" + "".join(f"    {line}\n" for line in lines)
    # register the source like a cell's lines, because some advice reads them
    linecache.cache["<program>"] = len(source), None, source.splitlines(keepends=True), "<program>"
    exec(compile(source, "<program>", "exec"), namespace)
    return launch(
        namespace["f"],
        advised.size,
        init=advised.init,
        trace=advised.trace,
        on_failure="return",
        timeout=advised.timeout,
    )


@pytest.mark.sample(10)
@pytest.mark.parametrize("name", PROGRAMS)
def test_advice_corrects_its_program(name: str, tmp_path: Path) -> None:
    advised = PROGRAMS[name]
    failure = run_program(advised, advised.wrong, tmp_path).failure
    assert failure is not None and advised.says in str(failure), failure
    assert "more time" not in str(failure), failure
    corrected = run_program(advised, advised.right, tmp_path)
    assert corrected.failure is None, corrected.failure


def test_every_advice_has_program() -> None:
    constants = {
        value
        for module in (diagnosis, joins, departure)
        for name, value in vars(module).items()
        if name.endswith("_ADVICE") and isinstance(value, str) and "{" not in value
    }
    known = {error.advice for error in _KNOWN_ERRORS} | constants
    tried = [advised.says for advised in PROGRAMS.values()]
    assert not [advice for advice in known if not any(words in advice for words in tried)]


def test_gives_no_advice_on_unknown_errors() -> None:
    assert advice_for("ValueError", "something else") == ""
