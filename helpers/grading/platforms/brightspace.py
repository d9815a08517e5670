"""Brightspace (D2L): its downloads of an assignment, its export of grades, and its import.

A download contains a folder for each attempt, `12345-67890 - Ann Lee - Oct 12, 2026 1159 PM`, or all files in
one folder, with this text at the start of their names, and an `index.html`. Characters that are not allowed
in Windows file names are removed from names. In an export of grades, identifiers begin with `#`, and the last
column is called End-of-Line Indicator.
"""

from __future__ import annotations

import re

from helpers.grading.names import Source, clean_name
from helpers.grading.platforms.protocol import (
    Entries,
    GradedRoster,
    Platform,
    Roster,
    ScaledColumn,
    as_number,
    find_column,
)
from helpers.grading.table import Cell, UnchangedCell

# The text before the date is a name, which may contain " - ". A file's name follows the time.
_FORM_PATTERN = re.compile(
    r"(?P<number>\d+)-\d+ ?- (?P<who>.+?) ?- (?P<at>[^-]*\b\d{4}\b[^-]*?)(?: - (?P<rest>.+))?", re.S
)
_TIME_PATTERN = re.compile(
    r"(?P<month>[A-Za-z]{3})[a-z]* (?P<day>\d{1,2}), (?P<year>\d{4}) (?P<hour>\d{1,2}):?(?P<minute>\d{2}) ?"
    r"(?P<half>[AP])M",
    re.I,
)
_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_IDENTIFIERS = ("OrgDefinedId", "Username")
_LAST_COLUMN, _END_OF_LINE = "End-of-Line Indicator", "#"
_GRADE = " Points Grade"
_AFTER_NAME = rf"{_GRADE}(?: <[^>]*?MaxPoints:(?P<most>[\d.,]+)[^>]*>| <[^>]*>)?"


class _Brightspace(Platform):
    title = "Brightspace"
    file_names = (
        "`12345-67890 - Ann Lee - Oct 12, 2026 1159 PM/`; of several attempts, the newest counts"
    )
    rosters = "an export of grades, with both identifiers and the names"
    import_file = "brightspace.csv"
    numbers_tell_apart = True

    def sources(self, entries: Entries) -> dict[str, Source]:
        names = (*entries.folders, *entries.files)
        found = ((name, _FORM_PATTERN.fullmatch(name)) for name in names)
        return {
            name: Source(
                who := clean_name(match["who"]),
                f"{who}/",
                self.key,
                match["number"],
                _sortable_time(match["at"]),
            )
            for name, match in found
            if match
        }

    def added_files(self, entries: Entries) -> set[str]:
        return {"index.html"} & {*entries.files} if self.sources(entries) else set()

    def has_exported(self, roster: Roster) -> bool:
        return roster.has_columns(_LAST_COLUMN) and bool(roster.indexes(_IDENTIFIERS))

    def plain(self, cell: str) -> str:
        return cell.strip().removeprefix("#")

    def export(self, graded: GradedRoster) -> list[list[Cell]] | None:
        """Return the identifiers and a column of points for each notebook, on the scale of its column."""
        roster = graded.roster
        who = roster.indexes(_IDENTIFIERS)
        columns = {}
        for name, out_of in graded.notebooks.items():
            found = find_column(name, roster.columns, _AFTER_NAME)
            most = as_number(found["most"] or "", out_of) if found else out_of
            columns[name] = ScaledColumn(found[0] if found else name + _GRADE, out_of, most)
        head: list[Cell] = [UnchangedCell(roster.columns[at]) for at in who]
        head += [UnchangedCell(each.name) for each in columns.values()]
        rows = [[*head, _LAST_COLUMN], *([*row, _END_OF_LINE] for row in graded.rows(who, columns))]
        return rows


def _sortable_time(text: str) -> str:
    """Return a time in a sortable form, or "" if it is not written in English."""
    found = _TIME_PATTERN.search(text)
    if found is None or found["month"].lower() not in _MONTHS:
        return ""
    month = _MONTHS.index(found["month"].lower()) + 1
    hour = int(found["hour"]) % 12 + 12 * (found["half"].upper() == "P")
    return f"{found['year']}-{month:02}-{int(found['day']):02} {hour:02}:{found['minute']}"


PLATFORM: Platform = _Brightspace()
