"""Blackboard (Original view): downloads of an assignment, the export of the Grade Center, and the import.

A download names each file `HW 1_alee_attempt_2026-10-12-08-00-00_x.ipynb`, and adds
`HW 1_alee_attempt_2026-10-12-08-00-00.txt` about the attempt.
"""

from __future__ import annotations

import os
import re
from collections.abc import Sequence

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

# Learners choose the text after the time, which may contain `_attempt_` again.
_FORM_PATTERN = re.compile(
    r"(?P<before>.+?)_attempt_(?P<at>\d{4}(?:-\d\d){5})(?:_(?P<rest>.+)|\.txt)?", re.S
)
_NAMES = ("Last Name", "First Name", "Username", "Student ID")
_STATES = ("Last Access", "Availability")
_PREVIEW = "_previewuser"
_AFTER_NAME = r"(?: \[Total Pts: (?:up to )?(?P<most>[\d.,]+)[^\]]*\])?(?: ?\|\d+)?"


class _Blackboard(Platform):
    title = "Blackboard"
    file_names = (
        "`HW 1_alee_attempt_2026-10-12-08-00-00_name.ipynb`; of several attempts, the newest counts"
    )
    rosters = "a download of the Grade Center, with the usernames"
    import_file = "blackboard.csv"

    def sources(self, entries: Entries) -> dict[str, Source]:
        # a folder is an archive that the instructor has unpacked
        names = (*entries.folders, *entries.files)
        found = {name: match for name in names if (match := _FORM_PATTERN.fullmatch(name))}
        assignment = _assignment([match["before"] for match in found.values()])
        sources = {}
        for name, match in found.items():
            who = clean_name(_username(match["before"], assignment))
            sources[name] = Source(who, who, attempt=match["at"], is_username=True)
        return sources

    def added_files(self, entries: Entries) -> set[str]:
        """Return the text files about attempts, except for learners who handed in no other file."""
        sources = self.sources(entries)
        texts = {name for name in sources if _is_text_about_attempt(name)}
        with_files = {source for name, source in sources.items() if name not in texts}
        return {name for name in texts if sources[name] in with_files}

    def is_learner(self, cells: Sequence[str], roster: Roster) -> bool:
        return not any(cell.strip().casefold().endswith(_PREVIEW) for cell in cells[:4])

    def has_exported(self, roster: Roster) -> bool:
        return roster.has_columns("Username") and bool(roster.indexes(_STATES))

    def export(self, graded: GradedRoster) -> list[list[Cell]] | None:
        """Return the columns with names, and the points of each notebook on the scale of its column."""
        roster = graded.roster
        who = roster.indexes(_NAMES)
        columns: dict[str, ScaledColumn] = {}
        for name, out_of in graded.notebooks.items():
            found = find_column(name, roster.columns, _AFTER_NAME)
            most = as_number(found["most"] or "", out_of) if found else out_of
            columns[name] = ScaledColumn(found[0] if found else name, out_of, most)
        head: list[Cell] = [UnchangedCell(roster.columns[at]) for at in who]
        head += [UnchangedCell(each.name) for each in columns.values()]
        return [head, *graded.rows(who, columns)]


def _is_text_about_attempt(name: str) -> bool:
    found = _FORM_PATTERN.fullmatch(name)
    return found is not None and found["rest"] is None and name.endswith(".txt")


def _assignment(texts: Sequence[str]) -> str:
    """Return the assignment's name and the underscore after it, if all texts begin with the same name.

    Both the assignment's name and usernames may contain underscores, so only the differing parts show where a
    username begins.
    """
    common = os.path.commonprefix(sorted({*texts})) if len({*texts}) > 1 else ""
    return common[: common.rfind("_") + 1]


def _username(text: str, assignment: str) -> str:
    """Return the username, which is the last word if there is no common assignment."""
    heads_differ = text.removeprefix(assignment).count("_") > 0
    return text.removeprefix(assignment) if assignment and heads_differ else text.rpartition("_")[2]


PLATFORM: Platform = _Blackboard()
