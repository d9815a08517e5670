"""Read the class from the learning platform's export, and match it with those who handed in.

`course grade --roster FILE` reads it. `reports.gradebooks` fills grades into its columns.

    export.csv --read_roster--> Roster --match_roster (with learners)--> RosterMatch
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path

from helpers.grading.owners import Source, only_letters
from helpers.grading.setting import CannotGrade
from helpers.grading.table import TableError, read_table
from helpers.views.plain import normalize_name

# First cells of rows in a Canvas export that are not learners: the points to reach, the test student.
_NO_LEARNERS = {"points possible", "student, test"}


# "Participant 22" of Moodle's grading worksheet (mod/assign/gradingtable.php, col_recordid), in any language.
_IDENTIFIER_PATTERN = re.compile(r"(\D*[^\W\d]\D*?)\s*(\d+)")
_LAST_NUMBER_PATTERN = re.compile(r"\d+$")
_FULL_NAMES = ("Full name", "Student", "Name", "Learner")
# Names are searched in this many first columns, where platforms put them.
_MAX_NAME_COLUMNS = 8


class RosterError(CannotGrade):
    """A roster cannot be used. The message is one line: the file, what is wrong, what to do."""


@dataclass(frozen=True)
class Roster:
    """The columns and rows of an export, unchanged."""

    file: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]

    def column_index(self, column: str) -> int | None:
        """Return the index of a column, ignoring case, or None if it does not exist."""
        names = [name.casefold() for name in self.columns]
        return names.index(column.casefold()) if column.casefold() in names else None


@dataclass(frozen=True)
class RosterMatch:
    """The learners of a roster's rows.

    Args:
        rows: The learner of each row, None if nothing was handed in.
        names: The learner's name for each row, with or without a file.
        without_entry: Learners that no row names.
        ambiguous: Names that several rows share, so that none was matched.
    """

    roster: Roster
    column: str
    rows: tuple[str | None, ...]
    names: tuple[str, ...]
    without_entry: tuple[str, ...]
    ambiguous: tuple[str, ...] = ()

    @property
    def without_submission(self) -> tuple[str, ...]:
        """The names of rows whose learners have handed in nothing."""
        pairs = zip(self.rows, self.names, strict=True)
        return tuple(name for learner, name in pairs if learner is None)

    def aliases(self) -> dict[str, str]:
        """Return the learner's name by each text that only one row has, in a cell or in two neighbors."""
        count = Counter(text for row in self.roster.rows for text in _name_texts(row))
        return {
            text: name
            for row, name in zip(self.roster.rows, self.names, strict=True)
            for text in _name_texts(row)
            if count[text] == 1
        }

    def with_people(self, people: Collection[str]) -> RosterMatch:
        """Return the match extended by learners who have points or a group, but no file."""
        rows = tuple(
            name if learner is None and name in people else learner
            for learner, name in zip(self.rows, self.names, strict=True)
        )
        more = [each for each in people if each not in {*rows, *self.without_entry}]
        return replace(self, rows=rows, without_entry=(*self.without_entry, *more))


def read_roster(path: Path) -> Roster:
    """Read a CSV export. Raise RosterError if the file is not a roster."""
    try:
        table = read_table(path, "The roster")
    except TableError as error:
        raise RosterError(str(error)) from None
    if not table:
        raise RosterError(
            f"The roster {path} is empty. Export it from the learning platform again."
        )
    (_, header), *lines = table
    columns = tuple(name.strip() for name in header)
    named = [name.casefold() for name in columns if name]
    if twice := sorted({name for name in columns if name and named.count(name.casefold()) > 1}):
        raise RosterError(f"{path} has the column {twice[0]!r} twice. Remove one of them.")
    for at, cells in lines:
        if any(cells[len(columns) :]):
            raise RosterError(
                f"{path}, line {at}, has {len(cells)} cells, but there are {len(columns)} columns. "
                "Is a comma in a name without quotes?"
            )
    width = len(columns)
    rows = [(*cells, *[""] * width)[:width] for _, cells in lines]
    rows = [cells for cells in rows if _is_learner(cells)]
    if not rows:
        raise RosterError(f"{path} names no learners: it has a header and nothing below it.")
    return Roster(str(path), columns, tuple(rows))


def match_roster(roster: Roster, learners: Mapping[str, Source]) -> RosterMatch:
    """Find each learner's row. Raise RosterError if none is found.

    First, rows match by the platform's number, unless they name a different person. The others match by the
    column, or the pair of neighboring columns, in which most learners are found. learners: the source of
    each name.
    """
    by_number, number_column = _by_number(roster, learners)
    rest = [name for name in learners if name not in by_number.values()]
    at, column, cells = _most_likely_column(roster, rest or list(learners))
    found = [by_number.get(row) or each for row, each in enumerate(_match_cells(cells, rest))]
    if learners and not any(found):
        raise RosterError(
            f"{roster.file} names nobody who handed something in (column {column!r}; looked for "
            f"{normalize_name(next(iter(learners)))[:60]!r} and the like). Is it this class's, and does that "
            "column hold the names of the submitted files or folders?"
        )
    count = Counter(cells)
    called = {normalize_name(source.name) for name, source in learners.items() if name not in found}
    present = set(found)
    return RosterMatch(
        roster,
        column if rest or not number_column else number_column,
        tuple(found),
        tuple(_names(roster, found, cells)),
        tuple(each for each in learners if each not in present),
        tuple(sorted(name for name in called if count[name] > 1)),
    )


def _by_number(roster: Roster, learners: Mapping[str, Source]) -> tuple[dict[int, str], str]:
    """Return the learners found by their platform's number, by row, and the number's column."""
    found: dict[int, str] = {}
    used = ""
    named: dict[str, set[int]] = {}
    for at, row in enumerate(roster.rows):
        for text in _name_texts(row):
            named.setdefault(_letters(text), set()).add(at)
    for platform, place in (
        ("canvas", roster.column_index("ID")),
        ("moodle", _identifiers(roster)),
    ):
        numbers: dict[str, list[str]] = {}
        for name, source in learners.items():
            if source.platform == platform and source.number:
                numbers.setdefault(source.number, []).append(name)
        for at, row in enumerate(roster.rows if place is not None else ()):
            number = _LAST_NUMBER_PATTERN.search(row[place or 0].strip())
            same = numbers.get(number[0], []) if number else []
            # In a different assignment, or as a group's number, the same number belongs to a different
            # person.
            only = learners[same[0]] if len(same) == 1 else None
            if only and (
                (platform == "moodle" and _is_blind(only, row[place or 0]))
                or _names_agree(at, row, only, named)
            ):
                found[at] = same[0]
                used = roster.columns[place or 0]
    return found, used


def _identifiers(roster: Roster) -> int | None:
    """Return the index of the column "Identifier" of Moodle's grading worksheet: "Participant 22"."""
    for at in range(len(roster.columns)):
        cells = [_IDENTIFIER_PATTERN.fullmatch(row[at].strip()) for row in roster.rows]
        if len({cell[1] if cell else None for cell in cells}) == 1 and all(cells):
            return at
    return None


def _is_blind(source: Source, identifier: str) -> bool:
    """Return whether a source's name is that of a row in Moodle's worksheet, in any language.

    In blind marking, "Teilnehmer/in 24" of the worksheet is "Teilnehmer_in_24" in a file's name or, with a
    group, "Team A-Teilnehmer_in_24". Only the number identifies the learner.
    """
    return only_letters(source.name.rpartition("-")[2]) == only_letters(identifier)


def _names_agree(
    at: int, row: Sequence[str], source: Source, named: Mapping[str, set[int]]
) -> bool:
    """Return whether a row that has a source's number may be its learner's, judging by the names.

    named: the rows that contain a name, by the name's letters.
    """
    # only the letters of a name are left, and a group's name is not in the roster
    if source.platform == "canvas":
        return at in named.get(_letters(source.name.rpartition(" (")[0]), {at})
    words = _words(source.name)
    # the name of a group may precede a name: "Team A-Ann Lee"
    return any(
        _words(text) == words or source.name.endswith(f"-{text}") for text in _name_texts(row)
    )


def _name_texts(row: Sequence[str]) -> set[str]:
    """Return the texts in a row that may name its learner: each cell, and two neighbors in either order."""
    cells = [normalize_name(cell) for cell in row[:_MAX_NAME_COLUMNS]]
    pairs = [
        pair
        for one, two in pairwise(cells)
        if one and two
        for pair in (f"{one} {two}", f"{two} {one}")
    ]
    return {text for text in (*cells, *pairs) if text}


def _most_likely_column(roster: Roster, learners: Sequence[str]) -> tuple[int, str, list[str]]:
    """Return index, name and cells of the column, or pair of columns, that names most learners."""
    columns = roster.columns
    tries = [
        (at, columns[at], [normalize_name(row[at]) for row in roster.rows])
        for at in range(len(columns))
    ]
    for at in range(min(len(columns), _MAX_NAME_COLUMNS) - 1):
        for one, two in ((at, at + 1), (at + 1, at)):
            name = f"{columns[one]} {columns[two]}"
            tries.append(
                (at, name, [normalize_name(f"{row[one]} {row[two]}") for row in roster.rows])
            )
    exact = set(map(normalize_name, learners))

    def hits(tried: tuple[int, str, list[str]]) -> tuple[int, int]:
        cells = tried[2]
        return sum(map(bool, _match_cells(cells, learners))), sum(cell in exact for cell in cells)

    return max((each for each in tries if each[1].strip()), key=hits)


def _names(roster: Roster, found: Sequence[str | None], cells: Sequence[str]) -> Iterator[str]:
    """Yield the learner's name for each row. Learners without a file are named as in the roster."""
    place = next(
        (at for name in _FULL_NAMES if (at := roster.column_index(name)) is not None), None
    )
    taken = Counter(filter(None, found))
    for row, learner, cell in zip(roster.rows, found, cells, strict=True):
        if learner is None:
            is_name = any(c.isalpha() for c in cell) and not re.fullmatch(r"\D+ \d+", cell)
            name = cell if is_name or place is None else normalize_name(row[place])
            name = name or next(filter(None, map(normalize_name, row)), "?")
            more = next((c for c in map(normalize_name, row) if c and c != name), str(len(taken)))
            learner = name if name not in taken else f"{name} ({more})"
            taken[learner] += 1
        yield learner


def _match_cells(cells: Sequence[str], learners: Sequence[str]) -> tuple[str | None, ...]:
    """Return each cell's learner: by the exact name, or ignoring case or a number if that is unique.

    The cell "kay" matches `kay_2` if no other learner has that name, because the number may count attempts.
    """
    exact = {normalize_name(learner): learner for learner in learners}
    loose: dict[str, list[str]] = {}
    numbered: dict[str, list[str]] = {}
    for learner in learners:
        folded = normalize_name(learner).casefold()
        loose.setdefault(folded, []).append(learner)
        numbered.setdefault(re.sub(r"[-_ ]\d{1,2}$", "", folded), []).append(learner)
    count, alike = Counter(cells), Counter(cell.casefold() for cell in cells)

    def learner_of(cell: str) -> str | None:
        if not cell or cell in exact:
            return exact[cell] if cell and count[cell] == 1 else None
        same = loose.get(cell.casefold()) or numbered.get(cell.casefold(), [])
        return same[0] if len(same) == 1 and alike[cell.casefold()] == 1 else None

    return tuple(learner_of(cell) for cell in cells)


def _words(name: str) -> list[str]:
    return sorted(re.findall(r"\w+", normalize_name(name).casefold()))


def _letters(name: str) -> str:
    return "".join(re.findall(r"\w+", normalize_name(name).casefold()))


def _is_learner(cells: Sequence[str]) -> bool:
    first = ", ".join(cell.strip().casefold() for cell in cells[:2])
    filled = [cell.strip().casefold() for cell in cells if cell.strip()]
    told_by_canvas = all(cell.startswith(("manual posting", "muted")) for cell in filled)
    is_row_of_canvas = bool({first, cells[0].strip().casefold()} & _NO_LEARNERS)
    return not is_row_of_canvas and not told_by_canvas
