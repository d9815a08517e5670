"""Read the class from the learning platform's export, and match it with the owners of submissions.

`course grade --roster FILE` reads the export. `reports.gradebooks` enters grades in the export's columns.

    export.csv --read_roster--> Roster --match_roster (with learners)--> RosterMatch
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Collection, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from helpers.grading.grade_options import CannotGrade
from helpers.grading.names import Source, compact_name, name_words
from helpers.grading.platforms import PLATFORMS, platform_of
from helpers.grading.platforms.protocol import MAX_NAME_COLUMNS, Roster, name_texts
from helpers.grading.table import TableError, read_table
from helpers.views.plain import normalize_name

_LAST_NUMBER_PATTERN = re.compile(r"\d+$")
# Columns with a part of a person's name, which contain no usernames.
_NAME_PART_PATTERN = re.compile(r"(?:first|last|given|family) ?name|surname", re.IGNORECASE)
_FULL_NAMES = ("Full name", "Student", "Name", "Learner")


class RosterError(CannotGrade):
    """A roster cannot be used. The message is one line with the file, the problem and advice."""


@dataclass(frozen=True)
class RosterMatch:
    """The learners of a roster's rows.

    Args:
        rows: The learner of each row, or None if nothing was handed in.
        names: The learner's name for each row, with or without a file.
        without_entry: Learners without a row.
        ambiguous: Names shared by several rows, none of which was matched.
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
        """Return {text: learner's name} for texts found in one row only, in a cell or in two neighbors."""
        rows = _plain_rows(self.roster)
        count = Counter(text for row in rows for text in name_texts(row))
        return {
            text: name
            for row, name in zip(rows, self.names, strict=True)
            for text in name_texts(row)
            if count[text] == 1
        }

    def with_people(self, people: Collection[str]) -> RosterMatch:
        """Return the match extended by learners with points or a group, but without a file."""
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
    roster = Roster(str(path), columns, tuple(rows))
    rows = [cells for cells in rows if all(each.is_learner(cells, roster) for each in PLATFORMS)]
    if not rows:
        below = "only rows that are not learners'" if roster.rows else "nothing"
        raise RosterError(f"{path} lists no learners: it has a header and {below} below it.")
    return replace(roster, rows=tuple(rows))


def match_roster(roster: Roster, learners: Mapping[str, Source]) -> RosterMatch:
    """Find each learner's row. Raise RosterError if no row is found.

    Rows are first matched by the platform's number, unless they name a different person. Other rows are
    matched by the column, or the pair of neighboring columns, that contains the most learners. Usernames are
    never compared with a part of a person's name. learners: {name: its source}.
    """
    by_number, number_column = _by_number(roster, learners)
    rest = [name for name in learners if name not in by_number.values()]
    column = _most_likely_column(roster, {name: learners[name] for name in rest or learners})
    cells = column.cells
    by_cell = column.match({name: learners[name] for name in rest})
    found = [by_number.get(row) or each for row, each in enumerate(by_cell)]
    if learners and not any(found):
        raise RosterError(
            f"{roster.file} contains no learner who handed something in (column {column.title!r}; looked for "
            f"{normalize_name(next(iter(learners)))[:60]!r} and the like). Is it this class's roster, and "
            "does that column contain the names of the submitted files or folders?"
        )
    count = Counter(cells)
    called = {normalize_name(source.name) for name, source in learners.items() if name not in found}
    present = set(found)
    return RosterMatch(
        roster,
        column.title if rest or not number_column else number_column,
        tuple(found),
        tuple(_names(roster, found, cells)),
        tuple(each for each in learners if each not in present),
        tuple(sorted(name for name in called if count[name] > 1)),
    )


def _by_number(roster: Roster, learners: Mapping[str, Source]) -> tuple[dict[int, str], str]:
    """Return {row: learner} for learners found by their platform's number, and that number's column."""
    found: dict[int, str] = {}
    used = ""
    named: dict[str, set[int]] = {}
    for at, row in enumerate(roster.rows):
        for text in name_texts(row):
            named.setdefault(compact_name(text), set()).add(at)
    for platform in PLATFORMS:
        numbers: dict[str, list[str]] = {}
        for name, source in learners.items():
            if source.platform == platform.key and source.number:
                numbers.setdefault(source.number, []).append(name)
        if not numbers or (place := platform.number_column(roster)) is None:
            continue
        for at, row in enumerate(roster.rows):
            number = _LAST_NUMBER_PATTERN.search(row[place].strip())
            same = numbers.get(number[0], []) if number else []
            # In a different assignment, or as a group's number, the number may belong to a different person.
            if len(same) == 1 and platform.is_row_of(learners[same[0]], at, roster, named):
                found[at] = same[0]
                used = roster.columns[place]
    return found, used


@dataclass(frozen=True)
class _Column:
    """A column, or two neighboring columns, of a roster. has_usernames: whether a cell may be a username."""

    title: str
    cells: tuple[str, ...]
    has_usernames: bool

    def match(self, learners: Mapping[str, Source]) -> tuple[str | None, ...]:
        """Return the learner of each cell, or None."""
        names = [name for name, source in learners.items() if not source.is_username]
        usernames = [name for name, source in learners.items() if source.is_username]
        return _match_cells(self.cells, names, usernames if self.has_usernames else [])


def _most_likely_column(roster: Roster, learners: Mapping[str, Source]) -> _Column:
    """Return the column, or the pair of columns, that contains the most learners."""
    columns, rows = roster.columns, _plain_rows(roster)
    tries = [
        _Column(
            title, tuple(row[at] for row in rows), not _NAME_PART_PATTERN.fullmatch(title.strip())
        )
        for at, title in enumerate(columns)
    ]
    for at in range(min(len(columns), MAX_NAME_COLUMNS) - 1):
        for one, two in ((at, at + 1), (at + 1, at)):
            cells = tuple(f"{row[one]} {row[two]}".strip() for row in rows)
            tries.append(_Column(f"{columns[one]} {columns[two]}", cells, False))
    exact = set(map(normalize_name, learners))

    def hits(column: _Column) -> tuple[int, int]:
        matches = sum(map(bool, column.match(learners)))
        return matches, sum(cell in exact for cell in column.cells)

    return max((each for each in tries if each.title.strip()), key=hits)


def _plain_rows(roster: Roster) -> list[list[str]]:
    """Return the rows with names in one form, without the platform's additions."""
    platform = platform_of(roster)
    return [
        [normalize_name(platform.plain(cell) if platform else cell) for cell in row]
        for row in roster.rows
    ]


def _names(
    roster: Roster, matched_learners: Sequence[str | None], cells: Sequence[str]
) -> Iterator[str]:
    """Yield the learner's name for each row. For learners without a file, it is the roster's name."""
    place = next(
        (at for name in _FULL_NAMES if (at := roster.column_index(name)) is not None), None
    )
    taken = Counter(filter(None, matched_learners))
    for row, learner, cell in zip(roster.rows, matched_learners, cells, strict=True):
        if learner is None:
            is_name = any(c.isalpha() for c in cell) and not re.fullmatch(r"\D+ \d+", cell)
            name = cell if is_name or place is None else normalize_name(row[place])
            name = name or next(filter(None, map(normalize_name, row)), "?")
            more = next((c for c in map(normalize_name, row) if c and c != name), str(len(taken)))
            learner = name if name not in taken else f"{name} ({more})"
            taken[learner] += 1
        yield learner


def _match_cells(
    cells: Sequence[str], names: Sequence[str], usernames: Sequence[str]
) -> tuple[str | None, ...]:
    """Return the learner for each cell, by the exact name or by a looser comparison with a unique result.

    The comparisons ignore, one after another: case; a number that may count attempts, so that "kay" matches
    `kay_2`; the order of words, leading zeros, and characters that platforms remove from names. Usernames are
    compared only without case, because similar usernames belong to different people.
    """
    learners = [*names, *usernames]
    exact = {normalize_name(learner): learner for learner in learners}
    count = Counter(cells)
    found = [exact.get(cell) if cell and count[cell] == 1 else None for cell in cells]
    # a cell with a learner's exact name, even in several rows, is not a variant of another name
    open_rows = {at for at, cell in enumerate(cells) if cell and cell not in exact}
    comparisons = [(_WITHOUT_CASE, learners), *((each, names) for each in _LOOSE_COMPARISONS)]
    for (compare_cell, compare_learner), compared_learners in comparisons:
        cell_keys = Counter(compare_cell(cell) for cell in cells)
        by_key: dict[Hashable, list[str]] = {}
        for learner in compared_learners:
            if learner not in found:
                by_key.setdefault(compare_learner(normalize_name(learner)), []).append(learner)
        for at in sorted(open_rows):
            key = compare_cell(cells[at])
            same = by_key.get(key, []) if key else []
            if found[at] is None and len(same) == 1 and cell_keys[key] == 1:
                found[at] = same[0]
    return tuple(found)


def _without_number(name: str) -> str:
    return re.sub(r"[-_ ]\d{1,2}$", "", name.casefold())


_Comparison = tuple[Callable[[str], Hashable], Callable[[str], Hashable]]
"""Two functions that compute the keys of a cell and a learner."""
_WITHOUT_CASE: _Comparison = (str.casefold, str.casefold)
# They are tried in this order.
_LOOSE_COMPARISONS: tuple[_Comparison, ...] = (
    (str.casefold, _without_number),
    (name_words, name_words),
    (compact_name, compact_name),
)
