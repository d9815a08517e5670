"""Who is in the class: the learning platform's own export, matched with those who handed something in.

`course grade --roster FILE` reads it; `reports.gradebooks` fills grades into its columns.

    export.csv --read_roster--> Roster --match_roster (with learners)--> RosterMatch
"""

from __future__ import annotations

import csv
import io
import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from helpers.grading.setting import CannotGrade

_MOST_BYTES = 20_000_000
# Rows of a Canvas export that are not a learner's: the points to reach, the test student.
_NO_LEARNERS = {"points possible", "student, test"}


class RosterError(CannotGrade):
    """A roster cannot be used: which file, what is wrong, what to do; one line."""


# The platform's number of a learner, as `find_submissions` puts it behind a name.
_NUMBER = re.compile(r" \((\d+)\)$")


@dataclass(frozen=True)
class Roster:
    """The rows of an export, its columns as they are."""

    file: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]

    def place(self, column: str) -> int | None:
        """Return the place of a column, whatever its case; None where there is none."""
        names = [name.casefold() for name in self.columns]
        return names.index(column.casefold()) if column.casefold() in names else None


@dataclass(frozen=True)
class RosterMatch:
    """Who is who. rows: for each row of the roster its learner, None if nothing was handed in.

    without_submission: their rows' names. without_entry: learners whom no row names.
    """

    roster: Roster
    column: str
    rows: tuple[str | None, ...]
    without_submission: tuple[str, ...]
    without_entry: tuple[str, ...]


def read_roster(path: Path) -> Roster:
    """Read a CSV export. Raise RosterError where it is none."""
    header, *lines = _table(path)
    columns = tuple(name.strip() for name in header)
    named = [name.casefold() for name in columns if name]
    if twice := sorted({name for name in columns if name and named.count(name.casefold()) > 1}):
        raise RosterError(f"{path} has the column {twice[0]!r} twice. Remove one of them.")
    for at, cells in enumerate(lines, 2):
        if any(cells[len(columns) :]):
            raise RosterError(
                f"{path}, row {at}, has {len(cells)} cells, but there are {len(columns)} columns. "
                "Is a comma in a name without quotes?"
            )
    width = len(columns)
    rows = [tuple((cells + [""] * width)[:width]) for cells in lines]
    rows = [cells for cells in rows if _is_learner(cells)]
    if not rows:
        raise RosterError(f"{path} names no learners: it has a header and nothing below it.")
    return Roster(str(path), columns, tuple(rows))


def match_roster(roster: Roster, learners: Iterable[str]) -> RosterMatch:
    """Find each learner's row. Raise RosterError if none is found, or if two rows name the same one.

    The column that names learners is the one in which most are found, in just this spelling.
    """
    known = tuple(dict.fromkeys(learners))
    column = _likeliest(roster, known)
    place = roster.columns.index(column)
    cells = [_key(row[place]) for row in roster.rows]
    counts = Counter(cells)
    if twice := next((cell for cell in cells if cell and counts[cell] > 1), ""):
        raise RosterError(
            f"{roster.file} names {twice!r} twice in the column {column!r}. Remove one row."
        )
    found = _find(cells, known)
    if known and not any(found):
        raise RosterError(
            f"{roster.file} names nobody who handed something in (column {column!r}; looked for "
            f"{_key(known[0])[:60]!r} and the like). Is it this class's, and does that column "
            "hold the names of the submitted files or folders?"
        )
    present = set(found)
    absent = [cells[at] or roster.rows[at][0] for at, each in enumerate(found) if each is None]
    return RosterMatch(
        roster, column, found, tuple(absent), tuple(each for each in known if each not in present)
    )


def _likeliest(roster: Roster, learners: Sequence[str]) -> str:
    exact = set(map(_key, learners))

    def hits(column: str) -> tuple[int, int]:
        place = roster.columns.index(column)
        cells = [_key(row[place]) for row in roster.rows]
        return sum(map(bool, _find(cells, learners))), sum(cell in exact for cell in cells)

    return max((name for name in roster.columns if name), key=hits)


def _find(cells: Sequence[str], learners: Sequence[str]) -> tuple[str | None, ...]:
    """Return each cell's learner: of just this name, or this number, else the only one but for its case."""
    exact = {_key(learner): learner for learner in learners}
    loose: dict[str, list[str]] = {}
    for learner in learners:
        loose.setdefault(_key(learner).casefold(), []).append(learner)
    alike = Counter(cell.casefold() for cell in cells)

    numbers: dict[str, list[str]] = {}
    for learner in learners:
        if found := _NUMBER.search(learner):
            numbers.setdefault(found[1], []).append(learner)

    def learner_of(cell: str) -> str | None:
        if len(numbers.get(cell, [])) == 1 and cell not in exact:
            return numbers[cell][0]
        if not cell or cell in exact:
            return exact.get(cell) if cell else None
        same = loose.get(cell.casefold(), [])
        return same[0] if len(same) == 1 and alike[cell.casefold()] == 1 else None

    return tuple(learner_of(cell) for cell in cells)


def _key(name: str) -> str:
    return unicodedata.normalize("NFC", " ".join(name.split()))


def _is_learner(cells: Sequence[str]) -> bool:
    first = cells[0].strip().casefold()
    filled = [cell.strip().casefold() for cell in cells if cell.strip()]
    told_by_canvas = all(cell.startswith(("manual posting", "muted")) for cell in filled)
    return first not in _NO_LEARNERS and not told_by_canvas


def _table(path: Path) -> list[list[str]]:
    try:
        with path.open("rb") as file:
            data = file.read(_MOST_BYTES + 1)
    except OSError as error:
        raise RosterError(f"The roster {path} cannot be read: {error.strerror}.") from None
    if len(data) > _MOST_BYTES:
        raise RosterError(f"The roster {path} is larger than {_MOST_BYTES:,} bytes.")
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise RosterError(
            f"The roster {path} is not UTF-8. Save it again as 'CSV UTF-8'."
        ) from None
    head = text.partition("\n")[0]
    delimiter = max(",;\t", key=head.count)
    try:
        table = list(csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True))
    except csv.Error as error:
        raise RosterError(f"The roster {path} is not a readable CSV file: {error}.") from None
    table = [cells for cells in table if any(cell.strip() for cell in cells)]
    if not table:
        raise RosterError(
            f"The roster {path} is empty. Export it from the learning platform again."
        )
    return table
