"""Read from `groups.csv` which people handed in one file together.

    group,learner

The files of all members, and those of a folder or file named like the group, count for each member. A
member may have no file and not be on the roster. A group of one names a person without a file.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from helpers.grading.record import Record
from helpers.grading.setting import CannotGrade
from helpers.grading.table import TableError, read_table
from helpers.views.plain import normalize_name

FILE = "groups.csv"
_COLUMNS = ("group", "learner")

Groups = Mapping[str, Sequence[str]]
"""The members of each group, by the group's name."""


class GroupError(CannotGrade):
    """The groups cannot be used. The message is one line: the file, what is wrong, what to do."""


def read_groups(path: Path) -> Groups:
    """Read the file. Raise GroupError if it is not a table of groups and learners."""
    try:
        rows = read_table(path, "The groups")
    except TableError as error:
        raise GroupError(str(error)) from None
    found: dict[str, list[str]] = {}
    for at, (line, cells) in enumerate(rows):
        pair = [normalize_name(cell) for cell in cells]
        if at == 0:
            if tuple(each.casefold() for each in pair) != _COLUMNS:
                raise GroupError(f"{path}, line {line}: the columns must be {', '.join(_COLUMNS)}.")
            continue
        if len(pair) != 2 or not all(pair):
            raise GroupError(f"{path}, line {line}: expected a group and a learner.")
        members = found.setdefault(pair[0], [])
        members += [pair[1]] * (pair[1] not in members)
    return found


def copy_for_members(records: Sequence[Record], groups: Groups) -> list[Record]:
    """Return the records, those of a group once for each of its members."""
    found: dict[tuple[str, str], Record] = {}
    members_of: dict[str, set[str]] = {}
    for group, members in groups.items():
        for each in (group, *members):
            members_of.setdefault(each, set()).update(members)
    for record in records:
        for learner in sorted(members_of.get(record.learner, {record.learner})):
            found[learner, record.file] = replace(record, learner=learner)
    return list(found.values())
