"""Compare all ways of one program, for the command and for the tests."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable
from dataclasses import dataclass, field
from importlib.metadata import version
from pathlib import Path

from tests.conformance.as_script import run_as_script
from tests.conformance.cells import Cells
from tests.conformance.entry import ENGINE_WAYS, SCRIPT, Entry
from tests.conformance.outcome import VALUE, Outcome, difference, fingerprint
from tests.conformance.plain import run_plainly

KEPT = Path(__file__).with_name("plain_outcomes.json")
"""The fingerprint of each program's outcome in new interpreters.

Fingerprints are stored because each run takes three or more imports of torch, and because they do not depend
on the course, but only on the program, Python and torch.
"""


@dataclass
class Compared:
    """One program's outcomes, and the differences by way ("plain" if its outcome is not as declared)."""

    entry: Entry
    outcomes: dict[str, Outcome] = field(default_factory=dict)
    differences: dict[str, str] = field(default_factory=dict)


def read_fingerprints() -> dict[str, str]:
    """Return the fingerprints by program, or none if they come from a different Python or torch."""
    found = json.loads(KEPT.read_text())
    return found["programs"] if found["versions"] == _versions() else {}


def keep(found: dict[str, str]) -> None:
    """Add fingerprints to the stored ones."""
    text = json.dumps(
        {"versions": _versions(), "programs": read_fingerprints() | found}, indent=1, sort_keys=True
    )
    half = KEPT.with_suffix(".half")
    half.write_text(f"{text}\n")
    half.replace(KEPT)


def _versions() -> dict[str, str]:
    return {
        "python": "{}.{}".format(*sys.version_info),
        "torch": version("torch").partition("+")[0],
    }


def compare(
    entry: Entry, cells: Cells | None, known: str | None, ways: Iterable[str] = ENGINE_WAYS
) -> Compared:
    """Run a program in all ways. Report differences from plain, and of plain from the program's constants.

    known: the fingerprint of its plain outcome. If all ways have this fingerprint, the program is not run
    plainly. If a way has a different one, the program may have changed, or this processor may compute
    different last digits.
    """
    compared = Compared(entry)
    for way in ways:
        if way == SCRIPT:
            compared.outcomes[way] = run_as_script(entry)
        elif cells is not None:
            compared.outcomes[way] = cells.run(entry, way)
    alike = all(
        way in entry.differs or fingerprint(entry.source, outcome) == known
        for way, outcome in compared.outcomes.items()
    )
    plain = None if known is not None and alike else _plain_outcome(entry)
    for way, outcome in compared.outcomes.items():
        expected = entry.differs[way][0] if way in entry.differs else None
        differs = difference(plain or outcome, outcome, expected)
        if differs:
            compared.differences[way] = differs
    if plain is not None:
        compared.outcomes["plain"] = plain
        declared = entry.fails or VALUE
        if plain.kind != declared:
            compared.differences["plain"] = f"declared {declared}, ended as {plain.short}"
    return compared


def _plain_outcome(entry: Entry) -> Outcome:
    outcome = run_plainly(entry)
    if outcome.kind != (entry.fails or VALUE):  # on a busy machine the plain way may fail
        outcome = run_plainly(entry)
    return outcome
