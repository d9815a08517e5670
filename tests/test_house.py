"""The packages of `helpers` have one order, and each imports only those below it.

Imports are read from the files' text, so those inside functions and under TYPE_CHECKING count. `views` may
import only the plain data of lower packages, which `DATA` lists. No import is circular.
"""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
ORDER = (
    # without imports of the course
    "torch_versions",
    "vocabulary",
    "plugins",
    "data",
    "plan",
    # the core
    "trace",
    "ranks",
    "jobs",
    "answers",
    "check_result",
    "views",
    "checks",
    "exercises",
    "course",
    # features, without which the core works (test_core.py)
    "hosts",
    "imagined",
    "explorers",
    "scripts",
    "grading",
    "teaching",
    "room",
    "dumps",
    # names of all packages for a notebook's first cell, imported when they are first used
    "__init__",
)
"""The packages and modules of `helpers`, from the lowest to the highest."""

FEATURES = ORDER[ORDER.index("course") + 1 : -1]

DATA = {
    "helpers.check_result",
    "helpers.jobs.run",
    "helpers.ranks.advice",
    "helpers.ranks.failures",
    "helpers.ranks.run",
}


@cache
def files() -> dict[str, Path]:
    """Return the files of `helpers` by their dotted names."""
    return {_dotted(path): path for path in (ROOT / "helpers").rglob("*.py")}


@cache
def imports() -> dict[str, set[str]]:
    """Return the imported files of each file of `helpers`, by dotted name."""
    return {name: set(_named(path)) - {name} for name, path in files().items()}


def _dotted(path: Path) -> str:
    return ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")


def _named(path: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name in files())
        elif isinstance(node, ast.ImportFrom) and node.module in files():
            inner = {f"{node.module}.{alias.name}" for alias in node.names} & set(files())
            yield from inner or {node.module}


@cache
def reached(start: str) -> set[str]:
    """Return all files that a file imports, and those that they import, and so on."""
    found: set[str] = set()
    todo = [start]
    while todo:
        more = imports()[todo.pop()] - found
        found |= more
        todo += more
    return found


def _in(*folders: str) -> list[str]:
    starts = tuple(f"helpers.{folder}." for folder in folders)
    return sorted(name for name in files() if name.startswith(starts))


def test_imports_are_not_circular() -> None:
    circles = [
        f"{name} imports {other}, which imports it"
        for name in sorted(files())
        for other in sorted(imports()[name])
        if name in reached(other)
    ]
    assert not circles


def _package(name: str) -> str:
    """Return the part of `helpers` to which a file belongs."""
    return f"{name}.__init__".split(".")[1]


def test_order_lists_every_package() -> None:
    assert sorted(ORDER) == sorted({_package(name) for name in files()})


def test_packages_import_only_lower_packages() -> None:
    upward = [
        f"{name} imports {other}"
        for name in sorted(files())
        for other in sorted(imports()[name])
        if ORDER.index(_package(name)) < ORDER.index(_package(other))
    ]
    assert not upward


def test_views_import_only_data() -> None:
    for name in [*_in("views"), *DATA]:
        others = {x for x in reached(name) if not x.startswith(("helpers.trace.", "helpers.views"))}
        assert others <= DATA, name


def test_rank_code_avoids_replaceable_comparisons() -> None:
    """`torch.equal` is looked up when it is called: an answer may have replaced it by then."""
    in_ranks = [name for name in files() if ".in_ranks" in name]
    for name in ("helpers.checks.driver", "helpers.checks.adversarial", *in_ranks):
        text = files()[name].read_text()
        assert not re.search(r"\.(equal|allclose)\b", text), name


@pytest.mark.parametrize(
    "statement",
    [
        "import helpers.ranks.launcher",
        "from click.testing import CliRunner; from helpers.course.cli import main; "
        "assert CliRunner().invoke(main, ['--help']).exit_code == 0; "
        "assert CliRunner().invoke(main, ['hint', '2.1']).exit_code == 0",
        "from helpers.course.hints import hint; hint('token_ring')",
        "from helpers.checks.headings import headings; assert len(headings()) > 100",
    ],
)
def test_quick_imports_and_hints_avoid_torch(statement: str) -> None:
    """A kernel's rank server starts while the first cell imports torch, and a hint should appear at once."""
    program = f"import sys; {statement}; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", program], cwd=ROOT).returncode == 0


def test_text_files_use_explicit_encoding() -> None:
    """Without an encoding, Python uses the locale's, so code that works in one country fails in another."""
    found = []
    for path in (ROOT / "helpers").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
                named = {keyword.arg for keyword in node.keywords}
                if node.func.attr in {"read_text", "write_text"} and "encoding" not in named:
                    found.append(f"{path.relative_to(ROOT)}:{node.lineno}")
    assert not found
