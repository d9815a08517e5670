"""Define the interface of a learning platform for grading, and the data passed to it.

names in an export --sources--> owner of each        roster --has_exported, is_learner, number_column-->
grades of a roster's rows --export--> the table for import into the platform
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

from helpers.grading.names import Source, name_words
from helpers.grading.table import Cell, UnchangedCell
from helpers.views.plain import normalize_name


@dataclass(frozen=True)
class Entries:
    """The names of the folders and files in one folder of a class. parent: the name of this folder."""

    folders: tuple[str, ...]
    files: tuple[str, ...]
    parent: str = ""


@dataclass(frozen=True)
class Roster:
    """The columns and rows of an export, unchanged."""

    file: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]

    def column_index(self, column: str) -> int | None:
        """Return the index of a column, or None if it does not exist. Case is ignored."""
        names = [name.casefold() for name in self.columns]
        return names.index(column.casefold()) if column.casefold() in names else None

    def has_columns(self, *columns: str) -> bool:
        return all(self.column_index(column) is not None for column in columns)

    def indexes(self, columns: Iterable[str]) -> list[int]:
        """Return the indexes of those columns that exist, in the roster's order."""
        return sorted(at for name in columns if (at := self.column_index(name)) is not None)


@dataclass(frozen=True)
class GradedRoster:
    """A roster with the points of its rows.

    Args:
        notebooks: Each notebook's maximum number of points.
        grades: For each row, {notebook: points}, or None if a person has to decide, or if nothing was handed
            in.
        totals: For each row, the share of all points and the maximum number of points, or None in the same
            cases as in `grades`.
    """

    roster: Roster
    notebooks: Mapping[str, float]
    grades: tuple[Mapping[str, float | None], ...]
    totals: tuple[tuple[float, float] | None, ...]

    def rows(self, who: Sequence[int], columns: Mapping[str, ScaledColumn]) -> list[list[Cell]]:
        """Return a row for each learner: the columns that identify the learner, then the points."""
        return [
            [UnchangedCell(cells[at]) for at in who]
            + [columns[name].scaled(grades[name]) for name in self.notebooks]
            for cells, grades in zip(self.roster.rows, self.grades, strict=True)
        ]


@dataclass(frozen=True)
class ScaledColumn:
    """The column of a notebook. out_of: its points in the course. maximum: the maximum of the column."""

    name: str
    out_of: float
    maximum: float

    def scaled(self, points: float | None) -> float | None:
        """Return points on the column's scale."""
        if points is None or self.maximum == self.out_of or not self.out_of:
            return points
        return points * self.maximum / self.out_of


class Platform:
    """A learning platform. Most methods have a default for a platform without special features.

    Attributes:
        title: The platform's name.
        file_names: The form of file names in its exports, for the table in docs/grading.md.
        rosters: The tables of the platform that can be used as a roster, for docs/grading.md.
        import_file: The name of the file for import, or "" if no file is written.
        numbers_tell_apart: Whether the number in a file's name distinguishes people with the same name whose
            files are in the same folder, although a person's number may change with the assignment.
        has_common_columns: Whether `has_exported` accepts columns that rosters of other platforms may have.
            These other platforms take precedence.
        advice: Advice on several rows with the same name, or "" if there is no remedy.
    """

    title: ClassVar[str]
    file_names: ClassVar[str]
    rosters: ClassVar[str]
    import_file: ClassVar[str] = ""
    numbers_tell_apart: ClassVar[bool] = False
    has_common_columns: ClassVar[bool] = False
    advice: ClassVar[str] = ""

    @property
    def key(self) -> str:
        """The name used in a `Source` to refer to this platform."""
        return self.title.casefold()

    def sources(self, entries: Entries) -> dict[str, Source]:
        """Return the owner of each entry named by this platform."""
        return {}

    def is_export(self, entries: Entries) -> bool:
        """Return whether a folder without a known owner is an export, not one learner's folder."""
        return bool(self.sources(entries))

    def added_files(self, entries: Entries) -> set[str]:
        """Return the files that the platform has added to an export or to a learner's folder.

        Accept a name such as `comments.txt` only if `entries.parent` has the platform's form, because
        learners on other platforms might have chosen this name.
        """
        return set()

    def is_learner(self, cells: Sequence[str], roster: Roster) -> bool:
        """Return whether a row of a roster, which may be another platform's, can belong to a learner.

        roster: the whole roster, with the columns of `cells`.
        """
        return True

    def has_exported(self, roster: Roster) -> bool:
        """Return whether a roster has the columns of this platform's export."""
        return False

    def plain(self, cell: str) -> str:
        """Return a cell of this platform's roster without marks that are not part of a name."""
        return cell

    def number_column(self, roster: Roster) -> int | None:
        """Return the index of the column with the numbers used in file names, or None.

        Only digits are compared. If a platform's files contain other ids, return None, so that names are
        compared.
        """
        return None

    def is_row_of(
        self, source: Source, at: int, roster: Roster, named: Mapping[str, set[int]]
    ) -> bool:
        """Return whether the names allow row `at`, which contains a source's number, to be the source's row.

        named: {name in the form of `compact_name`: rows containing it}.
        """
        return name_words(source.name) in map(name_words, name_texts(roster.rows[at]))

    def export(self, graded: GradedRoster) -> list[list[Cell]] | None:
        """Return the table for import into the platform, or None if the roster lacks a needed column."""
        return None


# Number of leading columns to search for names.
MAX_NAME_COLUMNS = 8


def name_texts(row: Sequence[str]) -> set[str]:
    """Return each text in a row that may be the learner's name: a cell, or two neighbors in any order."""
    cells = [normalize_name(cell) for cell in row[:MAX_NAME_COLUMNS]]
    pairs = [
        pair
        for one, two in zip(cells, cells[1:], strict=False)
        if one and two
        for pair in (f"{one} {two}", f"{two} {one}")
    ]
    return {text for text in (*cells, *pairs) if text}


def find_column(
    notebook: str, columns: Sequence[str], after: str = "", before: str = ""
) -> re.Match[str] | None:
    """Return the match for a notebook's column in the export, or None if there is no such column.

    before, after: patterns of the platform's text around the name.
    """
    own = re.compile(f"{before}{re.escape(notebook)}{after}", re.IGNORECASE)
    return next((found for name in columns if (found := own.fullmatch(name))), None)


_THOUSANDS_PATTERN = re.compile(r"[1-9]\d{0,2}(?:,\d{3})+(?:\.\d*)?")
_THOUSANDS_AND_COMMA_PATTERN = re.compile(r"[1-9]\d{0,2}(?:\.\d{3})+,\d*")


def as_number(text: str, default: float) -> float:
    """Return a column's maximum, or `default` if `text` contains no number.

    Commas before groups of exactly three digits separate thousands ("1,000", "1,234.50"), because a maximum
    rarely has thousandths, unless the number begins with 0. Any other comma is a decimal comma ("10,5",
    "0,500"), before which points separate thousands ("1.000,5"). A point alone is a decimal point ("1.000").
    """
    text = text.strip()
    if _THOUSANDS_PATTERN.fullmatch(text):
        text = text.replace(",", "")
    elif _THOUSANDS_AND_COMMA_PATTERN.fullmatch(text):
        text = text.replace(".", "")
    try:
        return float(text.replace(",", "."))
    except ValueError:
        return default
