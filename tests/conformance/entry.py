"""What a program says about itself: its constants, read from the source without running it."""

from __future__ import annotations

import ast
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

PROGRAMS = Path(__file__).parent / "programs"
ENGINE_WAYS = ("untraced", "launch", "ranks")
_FIELDS = {
    "WORLD_SIZE": "world_size",
    "INIT": "init",
    "LIKE": "like",
    "FAILS": "fails",
    "DIFFERS": "differs",
    "SETS": "sets",
}


@dataclass(frozen=True)
class Entry:
    """One program. `differs[way]` is (how it ends there, why), for ways that must differ.

    sets: it sets what stays in a process and cannot be taken back, so each way has a kernel of its own.
    """

    topic: str
    name: str
    source: str
    title: str = ""
    world_size: int = 2
    init: bool = True
    like: str = "spawn"
    fails: str = ""
    differs: dict[str, tuple[Any, str]] = field(default_factory=dict)
    sets: bool = False

    @property
    def path(self) -> str:
        return f"{self.topic}/{self.name}"

    @property
    def hangs(self) -> bool:
        return self.fails == "hang"


def read_entry(file: Path) -> Entry:
    """Read one program. Raise ValueError where it does not keep to the form."""
    source = file.read_text()
    tree = ast.parse(source, str(file))
    found: dict[str, Any] = {}
    for node in tree.body:
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
            name = _FIELDS.get(node.targets[0].id)
            if name is not None:
                found[name] = ast.literal_eval(node.value)
    entry = Entry(file.parent.name, file.stem, source, title=ast.get_docstring(tree) or "", **found)
    _check(entry)
    return entry


def _check(entry: Entry) -> None:
    if not entry.title or "\n" in entry.title:
        raise ValueError(f"{entry.path}: its first line must be a docstring of one line")
    if entry.like not in {"spawn", "torchrun"}:
        raise ValueError(f"{entry.path}: LIKE must be 'spawn' or 'torchrun'")
    if unknown := set(entry.differs) - set(ENGINE_WAYS):
        raise ValueError(f"{entry.path}: DIFFERS names no way: {', '.join(unknown)}")


def all_entries(names: Iterable[str] = ()) -> list[Entry]:
    """Return all programs by topic and name; `names` (topics or TOPIC/NAME) choose some of them."""
    entries = [read_entry(file) for file in sorted(PROGRAMS.glob("*/*.py"))]
    wanted = set(names)
    known = {entry.path for entry in entries} | {entry.topic for entry in entries}
    if unknown := wanted - known:
        raise ValueError(f"no topic or program: {', '.join(sorted(unknown))}")
    return [e for e in entries if not wanted or e.path in wanted or e.topic in wanted]
