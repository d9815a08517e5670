"""Read the programs from Python files with a marker before each, and the constants of each program.

    # %% skips_reduce | Rank 0 skips a collective and returns: the other rank waits forever.

Its constants are read from the source without running it.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

PROGRAMS = Path(__file__).parent / "programs"
SCRIPT = "script"
ENGINE_WAYS = ("untraced", "launch", "ranks", SCRIPT)
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
    """One program. `differs[way]` is (its outcome, reason), for ways that must differ.

    sets: whether it makes permanent changes in a process, so that each way has a separate kernel.
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


def read_entries(file: Path) -> Iterator[Entry]:
    """Split a topic's file into its programs. Raise ValueError if a program does not have the form above."""
    before, *parts = re.split(r"^# %% (?=.)", file.read_text(), flags=re.MULTILINE)
    if before.strip():
        raise ValueError(f"{file}: there is code before the first `# %% name | title`")
    for part in parts:
        marker, _, source = part.partition("\n")
        name, _, title = marker.partition(" | ")
        found: dict[str, Any] = {}
        for node in ast.parse(source, f"{file}: {name}").body:
            if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
                field_name = _FIELDS.get(node.targets[0].id)
                if field_name is not None:
                    found[field_name] = ast.literal_eval(node.value)
        entry = Entry(file.stem, name, source, title=title, **found)
        _check(entry)
        yield entry


def _check(entry: Entry) -> None:
    if not entry.title or not entry.name.isidentifier():
        raise ValueError(f"{entry.path}: `# %% name | title` is wanted above a program")
    if entry.like not in {"spawn", "torchrun"}:
        raise ValueError(f"{entry.path}: LIKE must be 'spawn' or 'torchrun'")
    if unknown := set(entry.differs) - set(ENGINE_WAYS):
        raise ValueError(f"{entry.path}: DIFFERS names no way: {', '.join(unknown)}")


def all_entries(names: Iterable[str] = ()) -> list[Entry]:
    """Return all programs by topic and name; `names` (topics or TOPIC/NAME) choose some of them."""
    entries = [entry for file in sorted(PROGRAMS.glob("*.py")) for entry in read_entries(file)]
    wanted = set(names)
    known = {entry.path for entry in entries} | {entry.topic for entry in entries}
    if unknown := wanted - known:
        raise ValueError(f"no topic or program: {', '.join(sorted(unknown))}")
    return [e for e in entries if not wanted or e.path in wanted or e.topic in wanted]
