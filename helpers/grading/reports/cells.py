"""CSV that a spreadsheet shows and never runs.

Called by `gradebooks`. A cell that would be run is given an apostrophe in front, which is OWASP's advice
(CSV Injection); numbers stay numbers.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterable, Sequence

from helpers.grading.reports.text import number, shown

Cell = str | float | None

_MOST = 1000
_NUMBER = re.compile(r"[+-]?[0-9]+(?:\.[0-9]+)?")
# Where a cell begins, also in a spreadsheet that takes another separator for the comma; then what
# spreadsheets skip; then what makes a formula, in the forms that they take for the plain one.
_STARTS = r"(^|[,;|\t])"
_QUOTES = "\"'`´‘’“”„«»"
_UNSEEN = (
    "\u00ad\u034f\u115f\u1160\u2800\u3164\uffa0\ufe00-\ufe0f\U000e0001-\U000e007f"
    "\u200b-\u200f\u2060-\u2064\ufeff\ufffd"
)
_SKIPPED = rf"([\s{_QUOTES}{_UNSEEN}]*)"
_FORMULA = "(?=[=+\\-@＝＋－＠﹦﹢﹣﹫⁼⁺⁻₌₊₋−])"
_RUN = re.compile(_STARTS + _SKIPPED + _FORMULA)


def csv_bytes(rows: Iterable[Sequence[Cell]], *, bom: bool) -> bytes:
    """Write rows as UTF-8 with commas and CRLF (RFC 4180); with a byte-order mark where Excel reads it.

    Without the mark Excel takes UTF-8 for the system's old code page.
    """
    text = io.StringIO(newline="")
    writer = csv.writer(text, lineterminator="\r\n")
    writer.writerows([_written(cell) for cell in row] for row in rows)
    return text.getvalue().encode("utf-8-sig" if bom else "utf-8")


def harmless(text: str) -> str:
    """Return a text as a cell that no spreadsheet runs: on one line, an apostrophe before a formula."""
    flat = re.sub(r"[\t\r\n\v\f]", " ", shown(text, _MOST))
    return flat if _NUMBER.fullmatch(flat) else _RUN.sub(r"\1'\2", flat)


def _written(cell: Cell) -> str:
    if cell is None:
        return ""
    return harmless(cell) if isinstance(cell, str) else number(cell)
