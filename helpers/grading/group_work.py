"""People who handed in one file together, read from `groups.csv`.

    group,learner

The files of all members of a group, and those of a folder or file that is called like the group, count for
each member. A member need not have a file, nor be on a roster. A group of one names a person without a file.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from helpers.grading.record import Record
from helpers.grading.setting import CannotGrade

FILE = "groups.csv"
_COLUMNS = ("group", "learner")
_MOST_BYTES = 4 << 20

Groups = Mapping[str, Sequence[str]]
"""The members of each group, by its name."""


class GroupError(CannotGrade):
    """The groups cannot be used. One line: the file, what is wrong, what to do."""


def read_groups(path: Path) -> Groups:
    """Read the file. Raise GroupError where it is not a table of groups and learners."""
    try:
        with path.open("rb") as file:
            data = file.read(_MOST_BYTES + 1)
        text = data.decode("utf-8-sig")
    except OSError as error:
        raise GroupError(f"The groups {path} cannot be read: {error.strerror}.") from None
    except UnicodeDecodeError:
        raise GroupError(f"{path} is not UTF-8. Save it again as 'CSV UTF-8'.") from None
    if len(data) > _MOST_BYTES:
        raise GroupError(f"The groups {path} are larger than {_MOST_BYTES:,} bytes.")
    # spreadsheets in many countries write semicolons
    delimiter = max(",;\t", key=text.partition("\n")[0].count)
    try:
        rows = list(csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True))
    except csv.Error as error:
        raise GroupError(f"{path} is not a readable CSV file: {error}.") from None
    found: dict[str, list[str]] = {}
    for line, cells in enumerate(rows, 1):
        pair = [" ".join(cell.split()) for cell in cells]
        if line == 1:
            if tuple(each.casefold() for each in pair) != _COLUMNS:
                raise GroupError(f"{path}, line 1: the columns must be {', '.join(_COLUMNS)}.")
        elif any(pair):
            if len(pair) != 2 or not all(pair):
                raise GroupError(f"{path}, line {line}: expected a group and a learner.")
            members = found.setdefault(pair[0], [])
            members += [pair[1]] * (pair[1] not in members)
    return found


def shared(records: Sequence[Record], groups: Groups) -> list[Record]:
    """Return the records, with those of each group for each of its members."""
    found: dict[tuple[str, str], Record] = {}
    members_of: dict[str, set[str]] = {}
    for group, members in groups.items():
        for each in (group, *members):
            members_of.setdefault(each, set()).update(members)
    for record in records:
        for learner in sorted(members_of.get(record.learner, {record.learner})):
            found[learner, record.file] = replace(record, learner=learner)
    return list(found.values())


def are_partners(one: str, other: str, groups: Groups) -> bool:
    """Return whether two learners are in one group, so that their answers are the same."""
    return any(one in members and other in members for members in groups.values())
