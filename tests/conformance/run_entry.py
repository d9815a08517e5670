"""All ways of one program, compared: what the command and the tests share."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

from tests.conformance.cells import Cells
from tests.conformance.entry import ENGINE_WAYS, Entry
from tests.conformance.outcome import VALUE, Outcome, difference, from_json
from tests.conformance.plain import run_plainly


@dataclass
class Compared:
    """One program's outcomes by way, and what differs, by way; "plain" where it is not as declared."""

    entry: Entry
    outcomes: dict[str, Outcome] = field(default_factory=dict)
    differences: dict[str, str] = field(default_factory=dict)


class PlainCache:
    """Plain outcomes kept in a JSON file, each under the program's name and its source's hash."""

    def __init__(self, file: Path | None = None) -> None:
        self.file = file
        self.kept = json.loads(file.read_text()) if file is not None and file.exists() else {}

    def outcome(self, entry: Entry) -> Outcome:
        """Return the kept outcome, or run the program plainly and keep how it ended."""
        key = hashlib.sha256(entry.source.encode()).hexdigest()[:16]
        held = self.kept.get(entry.path)
        if held is not None and held["source"] == key:
            return from_json(held["outcome"])
        outcome = run_plainly(entry)
        if outcome.kind != (entry.fails or VALUE):  # on a busy machine torch's own way may fail
            outcome = run_plainly(entry)
        self.kept[entry.path] = {"source": key, "outcome": outcome.as_json()}
        if self.file is not None:
            half = self.file.with_suffix(".half")
            half.write_text(json.dumps(self.kept, indent=1, sort_keys=True))
            half.replace(self.file)
        return outcome


def compare(
    entry: Entry, cells: Cells | None, plain: PlainCache, ways: Iterable[str] = ENGINE_WAYS
) -> Compared:
    """Run a program in all ways and say where one differs from plain, or plain from what it says."""
    compared = Compared(entry)
    seen = compared.outcomes["plain"] = plain.outcome(entry)
    declared = entry.fails or VALUE
    if seen.kind != declared:
        compared.differences["plain"] = f"declared {declared}, ended as {seen.short}"
    for way in ways if cells is not None else ():
        compared.outcomes[way] = cells.run(entry, way)
        expected = entry.differs[way][0] if way in entry.differs else None
        differs = difference(seen, compared.outcomes[way], expected)
        if differs:
            compared.differences[way] = differs
    return compared
