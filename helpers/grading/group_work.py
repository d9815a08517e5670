"""Read the groups of people who handed in one file together from `groups.csv`.

    group,learner
    group,learner,notebook

The files of all members count for each member, and so do files named like the group, or in a folder named
like the group. If there is a notebook in the third column, only this notebook is shared. A member may have no
file, and may be missing from the roster. A group with a single member can be used to add a learner without a
file.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from helpers.checks.headings import UnknownExercise, match_notebook
from helpers.grading.grade_options import CannotGrade
from helpers.grading.names import find_notebook_names
from helpers.grading.record import Record
from helpers.grading.reports.copies import split_by_notebook
from helpers.grading.table import TableError, read_table
from helpers.views.plain import normalize_name

FILE = "groups.csv"
_COLUMNS = ("group", "learner")
_WITH_NOTEBOOK = (*_COLUMNS, "notebook")


@dataclass(frozen=True)
class Group:
    """People who hand in one file together. notebook: the only notebook that they share, or "" for all."""

    name: str
    members: tuple[str, ...]
    notebook: str = ""


Groups = Sequence[Group]


class GroupError(CannotGrade):
    """The groups cannot be used. The message is one line with the file, the problem and advice."""


def read_groups(path: Path) -> Groups:
    """Read the file. Raise GroupError if it is not a table of groups and learners."""
    try:
        rows = read_table(path, "The groups")
    except TableError as error:
        raise GroupError(str(error)) from None
    found: dict[tuple[str, str], list[str]] = {}
    columns: tuple[str, ...] = ()
    for at, (line, cells) in enumerate(rows):
        row = [normalize_name(cell) for cell in cells]
        if at == 0:
            columns = tuple(each.casefold() for each in row)
            if columns not in (_COLUMNS, _WITH_NOTEBOOK):
                raise GroupError(
                    f"{path}, line {line}: the columns must be {', '.join(_COLUMNS)} and, if a group shares "
                    f"one notebook only, {_WITH_NOTEBOOK[-1]}."
                )
            continue
        row += [""] * (len(columns) - len(row))
        if len(row) != len(columns) or not all(row[:2]):
            raise GroupError(f"{path}, line {line}: expected a group and a learner.")
        notebook = _notebook(row[2], path, line) if len(row) > 2 and row[2] else ""
        members = found.setdefault((row[0], notebook), [])
        members += [row[1]] * (row[1] not in members)
    return tuple(Group(name, tuple(each), notebook) for (name, notebook), each in found.items())


def _notebook(text: str, path: Path, line: int) -> str:
    try:
        return match_notebook(text)
    except UnknownExercise as error:
        raise GroupError(f"{path}, line {line}: {error.args[0]}") from None


def copy_for_members(records: Sequence[Record], groups: Groups) -> list[Record]:
    """Return the records, with each record of a group repeated for each of its members."""
    if any(group.notebook for group in groups):
        records = [part for record in records for part in split_by_notebook(record)]
    found: dict[tuple[str, str, str], Record] = {}
    for record in records:
        # for an unreadable file, only its name can show the notebook
        named = record.notebook or "".join(find_notebook_names(Path(record.file).name)[:1])
        members = {
            member
            for group in groups
            if group.notebook in ("", named) and record.learner in (group.name, *group.members)
            for member in group.members
        }
        for learner in sorted(members or {record.learner}):
            found[learner, record.file, record.notebook] = replace(record, learner=learner)
    return list(found.values())
