"""Moodle: its downloads of an assignment, its grading worksheet, and its import of grades.

mod/assign/classes/downloader.php writes `Ann Lee_22_assignsubmission_file/x.ipynb` or, in one folder,
`Ann Lee_22_assignsubmission_file_x.ipynb`; `Participant_1011_...` in blind marking, and `Team A_7_...`.
clean_filename (PARAM_FILE, lib/moodlelib.php) removes quotes, slashes, `: | & < >` and backquotes from them.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from helpers.grading.names import (
    Source,
    clean_name,
    is_feedback_name,
    name_words,
    only_letters,
    stem_of,
)
from helpers.grading.platforms.protocol import (
    Entries,
    GradedRoster,
    Platform,
    Roster,
    ScaledColumn,
    as_number,
    find_column,
    name_texts,
)
from helpers.grading.table import Cell, UnchangedCell

_FORM_PATTERN = re.compile(
    r"(?P<who>.+?)(?:_(?P<number>\d+))?_assign(?P<kind>submission|feedback)_[a-z]+(?:_(?P<rest>.*))?",
    re.S,
)
# The word for a participant in blind marking ("participant" of mod/assign/lang), letters only. In an unlisted
# language, the number becomes part of the name only if the export contains two such learners.
_PARTICIPANT_WORDS_PATTERN = re.compile(
    "participant|participante|partecipante|teilnehmerin|teilnehmer|teilnehmende|deelnemer|deltaker"
    "|deltagare|deltager|uczestnik|účastník|osallistuja|résztvevő|participantă|катысушы|участник"
    "|учасник|katılımcı|συμμετέχων|משתתף|مشارك|参加者|参与者|參與者|참가자"
)
# "Participant 22" of the grading worksheet (mod/assign/gradingtable.php, col_recordid), in any language.
_IDENTIFIER_PATTERN = re.compile(r"(\D*[^\W\d]\D*?)\s*(\d+)")
# Moodle rejects a file with a grade above 100, unless the site allows unlimited grades.
_MAX_POINTS = 100.0
_IDENTIFIERS = ("Email address", "Username", "ID number")
_NAMES = ("First name", "Last name", "Surname", "Full name", *_IDENTIFIERS)


class _Moodle(Platform):
    title = "Moodle"
    file_names = (
        "`Ann Lee_22_assignsubmission_file/`, also with all files in one folder; `Participant_1011_...` with "
        "blind marking"
    )
    rosters = "a grade export, or the assignment's grading worksheet"
    import_file = "moodle.csv"
    numbers_tell_apart = True
    has_common_columns = True  # a table with "Username" may come from any platform
    advice = (
        "If it is Moodle's, use the assignment's grading worksheet, which has participants' numbers"
    )

    def sources(self, entries: Entries) -> dict[str, Source]:
        stems = {name: name for name in entries.folders} | {x: stem_of(x) for x in entries.files}
        found = ((name, _FORM_PATTERN.fullmatch(stem)) for name, stem in stems.items())
        return {name: self._source(match) for name, match in found if match}

    def _source(self, match: re.Match[str]) -> Source:
        name, number = clean_name(match["who"]), match["number"] or ""
        # In blind marking all learners have this name, possibly after their group's name ("Team
        # A-Participant"). The grading worksheet lists them by this name and number.
        is_blind = _PARTICIPANT_WORDS_PATTERN.fullmatch(only_letters(name.rpartition("-")[2]))
        name = f"{name} {number}" if is_blind and number else name
        key = self.key if number else ""
        is_feedback = is_feedback_name(match["kind"])
        return Source(name, f"{name}/", key, number, is_feedback=is_feedback)

    def has_exported(self, roster: Roster) -> bool:
        return roster.has_columns("Identifier", "Grade") or bool(roster.indexes(_IDENTIFIERS))

    def number_column(self, roster: Roster) -> int | None:
        """Return the column "Identifier" of the grading worksheet: "Participant 22"."""
        for at in range(len(roster.columns)):
            cells = [_IDENTIFIER_PATTERN.fullmatch(row[at].strip()) for row in roster.rows]
            if len({cell[1] if cell else None for cell in cells}) == 1 and all(cells):
                return at
        return None

    def is_row_of(
        self, source: Source, at: int, roster: Roster, named: Mapping[str, set[int]]
    ) -> bool:
        row, column = roster.rows[at], self.number_column(roster)
        # In blind marking, "Teilnehmer/in 24" of the worksheet is "Teilnehmer_in_24" in a file's name or,
        # with a group, "Team A-Teilnehmer_in_24". Only the number identifies the learner.
        if column is not None and only_letters(source.name.rpartition("-")[2]) == only_letters(
            row[column]
        ):
            return True
        # the name of a group may precede a name: "Team A-Ann Lee"
        words = {name_words(source.name), *map(name_words, _ends_after_hyphen(source.name))}
        return any(name_words(text) in words for text in name_texts(row))

    def export(self, graded: GradedRoster) -> list[list[Cell]] | None:
        """Return the grading worksheet with grades filled in, or a table like a grade export.

        A table keeps the columns with names and user ids, and notebooks with more than 100 points are given
        in percent.
        """
        roster = graded.roster
        if roster.has_columns("Identifier", "Grade"):
            return _worksheet(graded)
        if not roster.indexes(_IDENTIFIERS):
            return None
        who = roster.indexes(_NAMES)
        columns = {}
        for name, out_of in graded.notebooks.items():
            found = find_column(name, roster.columns, r"(?: \(Real\))?", r"(?:[^:]{1,40}: ?)?")
            in_percent = out_of > _MAX_POINTS
            head = (found[0] if found else name) + " (%)" * in_percent
            columns[name] = ScaledColumn(head, out_of, _MAX_POINTS if in_percent else out_of)
        head_row: list[Cell] = [UnchangedCell(roster.columns[at]) for at in who]
        # A grade above the maximum is rejected, so limit it even with a bonus.
        grades = tuple(
            {name: _capped(points, graded.notebooks[name]) for name, points in row.items()}
            for row in graded.grades
        )
        capped = GradedRoster(roster, graded.notebooks, grades, graded.totals)
        return [[*head_row, *(each.name for each in columns.values())], *capped.rows(who, columns)]


def _ends_after_hyphen(name: str) -> list[str]:
    return [name[at + 1 :] for at, char in enumerate(name) if char == "-"]


def _capped(points: float | None, max_points: float) -> float | None:
    return None if points is None else min(points, max_points)


def _worksheet(graded: GradedRoster) -> list[list[Cell]]:
    """Return the grading worksheet of one assignment with its column "Grade" filled in.

    A grade is the share of the points times the row's "Maximum Grade", or the points if the row has no such
    maximum. All other cells are unchanged, because mod/assign/feedback/offline reads Identifier, Grade and
    the time of the last grade.
    """
    roster = graded.roster
    grade, most = roster.column_index("Grade"), roster.column_index("Maximum Grade")
    assert grade is not None
    rows: list[list[Cell]] = [[UnchangedCell(name) for name in roster.columns]]
    for cells, total in zip(roster.rows, graded.totals, strict=True):
        row: list[Cell] = [UnchangedCell(cell) for cell in cells]
        if total is not None:
            share, out_of = total
            row[grade] = share * as_number("" if most is None else cells[most], out_of)
        rows.append(row)
    return rows


PLATFORM: Platform = _Moodle()
