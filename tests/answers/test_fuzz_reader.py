"""Read broken and random notebooks: reading always ends, and fails only with UnreadableNotebook."""

from __future__ import annotations

import json
import keyword
import os
import random
import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from helpers.answers.build import Answer, Problem, build_answer, normalize
from helpers.answers.history import answer_from_history
from helpers.answers.listing import parse_quietly
from helpers.answers.notebook import UnreadableNotebook, read_notebook
from helpers.answers.reader import read_answers

QUICK = settings(max_examples=100, database=None)
SOAK = settings(QUICK, max_examples=20_000)

NAMES = ["f", "g", "C", "x", "xs", "run", "launch", "_", "__name__", "é", "\ufb01"]
SIGNS = [*"()[]{}:;,.=@%!?*\\#'\"01", "==", ":=", "+=", "%%", "**", "->", "'''", '"""', "f'", "'s'"]
ODD = ["\0", "\ud800", "\u2028", "\x0c", "\r", "\ufeff"]
PIECES = [*NAMES, *SIGNS, *ODD, *keyword.kwlist, *keyword.softkwlist]
LINES = [
    "def f(x=g):\n    return x + h(xs)",
    "def f():\n    raise NotImplementedError('Exercise 1.1')",
    "class C(B):\n    n = x\n    def f(self): return C.n",
    "C.f = g",
    "xs.append(f)",
    "xs = [x for x in xs if (y := x)]",
    "x += 1",
    "f = g(f)",
    "from helpers import launch, span",
    "from math import *",
    "import torch.nn, os as x",
    "run = launch(f)",
    "x = run.values",
    "for x in f():\n    g = x",
    "try:\n    import g\nexcept ImportError as f:\n    g = None",
    "with open(x) as f: pass",
    "if __name__ == '__main__':\n    f()",
    "await f()",
    "%%ranks 2",
    "%%time",
    "%time x = 1",
    "!ls (",
    "x = !ls",
    "f?",
    "del f, x",
    "match x:\n    case C(f, [*xs]): pass",
    "@g.register\ndef _(f): pass",
    "global f",
    "lambda f=x: f",
    "from __future__ import annotations",
    "f'{x!r:>{g}}'",
    "def f[T](x: T): pass",
    "return f",
]

code = st.one_of(
    st.lists(st.sampled_from(LINES), max_size=8).map("\n".join),
    st.lists(st.sampled_from([*PIECES, " ", "\n", "\n    "]), max_size=40).map(" ".join),
    st.lists(st.sampled_from([*PIECES, *LINES, "\n", "\t"]), max_size=20).map("".join),
    st.text(max_size=60),
)
cells = st.lists(code, max_size=6)
values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=6), inner, max_size=4)
    ),
    max_leaves=12,
)


def read_bytes(content: bytes) -> None:
    """Read a file with these bytes like the capped child process."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "nb.ipynb"
        path.write_bytes(content)
        try:
            notebook = read_notebook(path)
        except UnreadableNotebook as error:
            assert "\n" not in str(error)
            return
    check([cell.code for cell in notebook.cells])


def check(sources: list[str]) -> None:
    """Assert that cells yield either an answer that parses or a one-line problem."""
    for found in (
        build_answer(sources, "f"),
        build_answer(sources, "C"),
        answer_from_history("f", sources),
    ):
        if isinstance(found, Answer):
            parse_quietly(found.source)
            normalize(found)
            lines = found.source.count("\n")
            assert all(found.place(line) is not None for line in range(1, lines + 1))
        else:
            assert isinstance(found, Problem)
            assert found.message and "\n" not in found.message
        assert all("\n" not in note for note in found.notes)


def notebook(sources: list[str]) -> dict[str, Any]:
    body = [
        {
            "cell_type": "code",
            "id": str(i),
            "metadata": {},
            "source": s.splitlines(True),
            "outputs": [],
        }
        for i, s in enumerate(sources)
    ]
    return {"cells": body, "metadata": {}, "nbformat": 4, "nbformat_minor": 5}


def mutate(content: bytes, seed: int) -> bytes:
    """Damage a file in a few places: cut, repeat, swap or overwrite."""
    source = random.Random(seed)
    data = bytearray(content)
    for _ in range(source.randint(1, 6)):
        at, length = source.randrange(len(data) + 1), source.randint(0, 12)
        kind = source.randrange(4)
        if kind == 0:
            del data[at : at + length]
        elif kind == 1:
            data[at:at] = data[at : at + length] * source.randint(1, 4)
        elif kind == 2:
            data[at : at + length] = source.randbytes(length)
        else:
            data[at:at] = source.choice(
                [b"[", b"{", b'"', b"null", b"]", b"}", b",", b"\\u0000", b"1e999"]
            )
    return bytes(data)


def fuzz_bytes(content: bytes) -> None:
    read_bytes(content)


def fuzz_json(value: Any) -> None:
    read_bytes(json.dumps(value).encode())
    read_bytes(json.dumps({"cells": value}).encode())
    read_bytes(json.dumps({"cells": [value, {"source": value}, {"cell_type": value}]}).encode())


def fuzz_mutated(sources: list[str], seed: int) -> None:
    read_bytes(mutate(json.dumps(notebook(sources)).encode(), seed))


def fuzz_code(sources: list[str]) -> None:
    check(sources)


@QUICK
@given(st.binary(max_size=200))
@example(b"\xef\xbb\xbf")
def test_random_bytes_raise_only_unreadable_notebook(content: bytes) -> None:
    fuzz_bytes(content)


@QUICK
@given(values)
def test_random_json_raises_only_unreadable_notebook(value: Any) -> None:
    fuzz_json(value)


@pytest.mark.extended
@QUICK
@given(cells, st.integers(0, 2**32))
def test_reads_or_reports_damaged_notebooks(sources: list[str], seed: int) -> None:
    fuzz_mutated(sources, seed)


@pytest.mark.extended
@settings(QUICK, max_examples=300)
@given(cells)
def test_builds_random_code_without_crash(sources: list[str]) -> None:
    fuzz_code(sources)


def test_child_reads_random_notebooks_without_crash(tmp_path: Path) -> None:
    source = random.Random(0)
    for seed in range(3):
        path = tmp_path / f"{seed}.ipynb"
        valid = json.dumps(notebook(source.choices(LINES, k=20))).encode()
        path.write_bytes(mutate(valid, seed) if seed else valid)
        try:
            found = read_answers(path, ["f", "C"], timeout_s=30)
        except UnreadableNotebook:
            continue
        assert set(found) == {"f", "C"}


@pytest.mark.soak
@pytest.mark.timeout(3600)
def test_soak_random_files() -> None:
    settings(SOAK)(given(st.binary(max_size=2_000))(fuzz_bytes))()
    settings(SOAK)(given(values)(fuzz_json))()
    settings(SOAK)(given(cells, st.integers(0, 2**32))(fuzz_mutated))()


@pytest.mark.soak
@pytest.mark.timeout(3600)
def test_reader_survives_much_random_code() -> None:
    settings(SOAK)(given(cells)(fuzz_code))()


@pytest.mark.soak
@pytest.mark.timeout(3600)
def test_soak_child_with_damaged_files(tmp_path: Path) -> None:
    for seed in range(200):
        path = tmp_path / "nb.ipynb"
        path.write_bytes(mutate(json.dumps(notebook(LINES)).encode(), seed) + os.urandom(seed % 3))
        try:
            assert set(read_answers(path, ["f"], timeout_s=30)) == {"f"}
        except UnreadableNotebook as error:
            assert "could not be read" not in str(error)
