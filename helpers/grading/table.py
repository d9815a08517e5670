"""Read tables of text cells written by spreadsheets or learning platforms, and define unchanged cells.

In many countries spreadsheets write semicolons and decimal commas. Some spreadsheets write UTF-16 or begin
with a line `sep=;`, and all of them may add empty columns at the end.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Sequence
from contextlib import suppress
from itertools import islice
from pathlib import Path
from typing import NamedTuple

_MAX_BYTES = 20_000_000
_SEPARATOR_PATTERN = re.compile(r"sep=(.)\r?\n", re.IGNORECASE)
# Number of nonempty rows that are compared to find the separator.
_FIRST_ROWS = 10
_DECIMAL_COMMA_PATTERN = re.compile(r"\s*-?\d+,\d+\s*")


class TableError(Exception):
    """A file cannot be read as a table. The message is one line with the file, the problem and advice."""


class UnchangedCell(str):
    """A cell of a platform's export that identifies a person, so it is written unchanged."""


Cell = UnchangedCell | str | float | None


class Row(NamedTuple):
    """The cells of a nonempty row, and the line on which it begins."""

    line: int
    cells: tuple[str, ...]


def read_table(path: Path, name: str) -> list[Row]:
    """Return the nonempty rows of a CSV file. Raise TableError if it is not a table.

    name: the file's name in messages, for example "The roster".
    """
    text = read_text(path, name)
    separator = _SEPARATOR_PATTERN.match(text)
    delimiter = separator[1] if separator else _likely_delimiter(text)
    lines = io.StringIO(text, newline="")
    before = 1
    if separator:
        lines.seek(separator.end())
        before = 2
    rows = []
    reader = csv.reader(lines, delimiter=delimiter, strict=True)
    start = before
    try:
        for cells in reader:
            if any(cell.strip() for cell in cells):
                rows.append(Row(start, tuple(cells)))
            start = before + reader.line_num
    except csv.Error as error:
        raise TableError(f"{path}, line {start}: this is not CSV: {error}.") from None
    width = max((_width(row.cells) for row in rows), default=0)
    # Remove only columns that are empty in every row, because an extra cell in one row is an error to report.
    return [Row(row.line, row.cells[:width]) for row in rows]


def _likely_delimiter(text: str) -> str:
    """Return the separator that divides most of the first rows into as many cells as the header.

    A title or a decimal number may contain other separators. If two separators fit equally well, the one with
    more cells is returned, then a semicolon or tab, because commas are more frequent inside cells.
    """
    fits = {delimiter: _fit(text, delimiter) for delimiter in ";\t,"}
    best = max(fits, key=lambda delimiter: fits[delimiter])
    return best if fits[best] > (0, 0) else ","


def _fit(text: str, delimiter: str) -> tuple[int, int]:
    """Return the number of first rows with as many cells as the header, and this number of cells.

    Both are 0 if the header is a single cell.
    """
    counts: list[int] = []
    with suppress(csv.Error):  # a wrong separator may follow a quote
        reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True)
        rows = (cells for cells in reader if any(cell.strip() for cell in cells))
        for cells in islice(rows, _FIRST_ROWS):
            counts.append(len(cells))
    return (counts.count(counts[0]), counts[0]) if counts and counts[0] > 1 else (0, 0)


def _width(cells: Sequence[str]) -> int:
    """Return the number of cells up to the last nonempty one."""
    return max((at for at, cell in enumerate(cells, 1) if cell.strip()), default=0)


def read_text(path: Path, name: str) -> str:
    """Return the text of a file in UTF-8, or in UTF-16 with a byte order mark. Raise TableError."""
    try:
        with path.open("rb") as file:
            data = file.read(_MAX_BYTES + 1)
    except OSError as error:
        raise TableError(f"{name} {path} cannot be read: {error.strerror}.") from None
    if len(data) > _MAX_BYTES:
        raise TableError(f"{name} {path} is larger than {_MAX_BYTES:,} bytes.")
    encoding = "utf-16" if data[:2] in (b"\xff\xfe", b"\xfe\xff") else "utf-8-sig"
    try:
        return data.decode(encoding)
    except UnicodeDecodeError:
        raise TableError(f"{name} {path} is not UTF-8. Save it again as 'CSV UTF-8'.") from None


def parse_number(cell: str) -> float:
    """Return the number in a cell, with a decimal point or a decimal comma. Raise ValueError."""
    return float(cell.replace(",", ".") if _DECIMAL_COMMA_PATTERN.fullmatch(cell) else cell)
