"""Canvas: its downloads of an assignment, its export of the gradebook, and its import.

lib/content_zipper.rb writes `leeann_LATE_123_456_x.ipynb` (user, upload), `LATE_anon_Ab3dE_456_x.ipynb` and
`leeann_123_text.html`. A file's name contains only the letters and digits of a learner's name such as "Lee,
Ann".
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from helpers.checks.headings import notebooks
from helpers.grading.names import Source, clean_name, compact_name, notebook_pattern, stem_of
from helpers.grading.platforms.protocol import (
    Entries,
    GradedRoster,
    Platform,
    Roster,
    ScaledColumn,
    find_column,
)
from helpers.grading.table import Cell, UnchangedCell

_FORM_PATTERN = re.compile(
    r"(?P<who>.+?)(?:_LATE)?_(?P<number>[1-9]\d*)_(?:(?P<upload>[1-9]\d*)_(?P<rest>.+)|text|link)",
    re.S,
)
_ANONYMOUS_PATTERN = re.compile(
    r"(?:LATE_)?(?P<who>anon_[^\W_]+)_(?P<upload>[1-9]\d*)_(?P<rest>.+)", re.S
)
# First cells of rows that are not learners: the maximum points and the test student.
_NO_LEARNERS = {"points possible", "student, test"}
_NO_GRADES = ("manual posting", "muted")
# The columns before "ID" in an export (lib/gradebook_exporter.rb).
_NAMES = (("Student",), ("LastName", "FirstName"))


class _Canvas(Platform):
    title = "Canvas"
    file_names = "`leeann_LATE_123_456_name.ipynb`; `anon_Ab3dE_456_name.ipynb` if anonymous"
    rosters = "an export of the gradebook, which has no anonymous names"
    import_file = "canvas.csv"

    def sources(self, entries: Entries) -> dict[str, Source]:
        """Return the owners of all files, or {} if the numbers are not the platform's.

        Each of the platform's numbers belongs to one learner, a learner has only one number, and no two
        uploads share an upload number. In `kay_2_...` and `zoe_2_...` the number has a different meaning,
        such as the number of attempts.
        """
        found = {name: match for name in entries.files if (match := _parts(stem_of(name)))}
        pairs = {(match["who"], match.groupdict().get("number")) for match in found.values()}
        # copies of one upload differ only in their extensions
        uploads = {
            stem_of(name): match["upload"] for name, match in found.items() if match["upload"]
        }
        numbered = {(who, number) for who, number in pairs if number}
        if len(set(uploads.values())) < len(uploads) or any(
            len({pair[at] for pair in numbered}) < len(numbered) for at in (0, 1)
        ):
            return {}
        sources = {}
        for name, match in found.items():
            number = match.groupdict().get("number") or ""
            who = clean_name(match["who"]) + (f" ({number})" if number else "")
            sources[name] = Source(who, who, self.key if number else "", number)
        return sources

    def is_export(self, entries: Entries) -> bool:
        # a single learner's file may have a name of this form by chance
        return len({source.name for source in self.sources(entries).values()}) > 1

    def is_learner(self, cells: Sequence[str], roster: Roster) -> bool:
        first = {", ".join(cell.strip().casefold() for cell in cells[:2]), *_folded(cells[:1])}
        told_by_platform = all(cell.startswith(_NO_GRADES) for cell in _folded(cells) if cell)
        return not first & _NO_LEARNERS and not told_by_platform

    def has_exported(self, roster: Roster) -> bool:
        first = roster.column_index("ID")
        return roster.has_columns("ID", "Section") and roster.columns[:first] in _NAMES

    def number_column(self, roster: Roster) -> int | None:
        return roster.column_index("ID")

    def is_row_of(
        self, source: Source, at: int, roster: Roster, named: Mapping[str, set[int]]
    ) -> bool:
        # only the letters of a name are left, and a group's name is not in the roster
        return at in named.get(compact_name(source.name.rpartition(" (")[0]), {at})

    def export(self, graded: GradedRoster) -> list[list[Cell]] | None:
        """Return the table for import into the gradebook.

        The columns from Student to Section are kept. Other assignments are left out, because importing them
        would undo grades given since the export. A column with the notebook's name, with or without the
        platform's number, is filled in; otherwise the platform creates an assignment.
        """
        roster, last = graded.roster, graded.roster.column_index("Section")
        if last is None:
            return None
        who = range(last + 1)
        columns = {}
        for name, out_of in graded.notebooks.items():
            found = find_column(name, roster.columns, r"(?: \(\d+\))?")
            columns[name] = ScaledColumn(found[0] if found else name, out_of, out_of)
        head: list[Cell] = [UnchangedCell(roster.columns[at]) for at in who]
        head += [each.name for each in columns.values()]
        to_reach: list[Cell] = ["    Points Possible", *[""] * last]
        return [head, [*to_reach, *graded.notebooks.values()], *graded.rows(who, columns)]


def _folded(cells: Sequence[str]) -> set[str]:
    return {cell.strip().casefold() for cell in cells}


def _parts(stem: str) -> re.Match[str] | None:
    match = _ANONYMOUS_PATTERN.fullmatch(stem) or _FORM_PATTERN.fullmatch(stem)
    if match is None or not match["upload"]:
        return match
    # in `kay_2_10_dataparallel_vs_ddp` the second number is the notebook's number
    written = [
        found.start() for name in notebooks() if (found := notebook_pattern(name).search(stem))
    ]
    return match if all(match.start("rest") <= at for at in written) else None


PLATFORM: Platform = _Canvas()
