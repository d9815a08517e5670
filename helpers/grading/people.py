"""Read the class, and the instructor's files about it: roster, groups, policy, overrides.

`command` reads all of these files before grading, so that errors are found at once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace

from helpers.grading import group_work
from helpers.grading.grade_options import Setting
from helpers.grading.group_work import Groups, read_groups
from helpers.grading.names import Source, name_words
from helpers.grading.platforms import PLATFORMS
from helpers.grading.points import overrides as given
from helpers.grading.points import policy as policies
from helpers.grading.points.overrides import Override
from helpers.grading.points.policy import DEFAULT_POLICY, Policy
from helpers.grading.reports.gradebooks import escape_formula
from helpers.grading.reports.text import line
from helpers.grading.roster import RosterMatch, match_roster, read_roster
from helpers.views.plain import normalize_name


@dataclass(frozen=True)
class People:
    """The class. notices: lines for the instructor, shown before grading begins."""

    match: RosterMatch | None
    groups: Groups
    policy: Policy
    overrides: tuple[Override, ...]
    notices: tuple[str, ...]

    @property
    def unknown_learners(self) -> tuple[str, ...]:
        """Learners who are not on the roster."""
        return self.match.without_entry if self.match else ()

    @property
    def members(self) -> tuple[str, ...]:
        """All members of groups."""
        return tuple(member for group in self.groups for member in group.members)


def read_people(setting: Setting, sources: Mapping[str, Source]) -> People:
    """Read the files about a class. Raise CannotGrade at the first wrong line.

    sources: {learner's name: its source}.
    """
    path = setting.groups or setting.out / group_work.FILE
    groups = read_groups(path) if setting.groups or path.exists() else ()
    names = {group.name for group in groups}
    handed_in = {name: source for name, source in sources.items() if name not in names}
    match = match_roster(read_roster(setting.roster), handed_in) if setting.roster else None
    # The roster may contain a person's name, login and number, and any of these is accepted.
    aliases = {**(match.aliases() if match else {}), **_by_spelling(handed_in)}
    find_learner = _finder(aliases)
    groups = tuple(
        replace(group, members=tuple(find_learner(x) for x in group.members)) for group in groups
    )
    aliases |= {x: x for group in groups for x in group.members}
    policy, overrides = DEFAULT_POLICY, tuple[Override, ...]()
    path = setting.policy or setting.out / policies.FILE
    if setting.policy or path.exists():
        policy = policies.read_policy(path, aliases)
    path = setting.overrides or setting.out / given.FILE
    if setting.overrides or path.exists():
        overrides = given.read_overrides(path, aliases)
    people = People(match, groups, policy, overrides, ())
    if match is not None:
        present = [*people.members, *(each.learner for each in overrides)]
        people = replace(people, match=match.with_people(present))
    return replace(people, notices=tuple(_notices(people, sources)))


def _finder(aliases: Mapping[str, str]) -> Callable[[str], str]:
    """Return a function that maps a name to the learner, or to itself if no learner has this name.

    A name in the instructor's files may contain characters that a platform has removed from a file's name.
    """
    by_words: dict[tuple[str, ...], set[str]] = {}
    for text, learner in aliases.items():
        by_words.setdefault(name_words(text), set()).add(learner)

    def find_learner(name: str) -> str:
        alike = by_words.get(name_words(name), set())
        return aliases.get(name) or (next(iter(alike)) if len(alike) == 1 else name)

    return find_learner


def _by_spelling(learners: Iterable[str]) -> dict[str, str]:
    """Return {name: learner}, including the spelling of each name in gradebook.csv."""
    names = list(learners)
    written = {normalize_name(escape_formula(line(name))): name for name in names}
    return written | {normalize_name(name): name for name in names}


def _notices(people: People, sources: Mapping[str, Source]) -> Iterator[str]:
    for name in people.unknown_learners:
        what = "handed in" if name in sources else "in a group"
        yield f"{name}: {what}, and not on the roster"
    for name in people.match.ambiguous if people.match else ():
        yield (
            f"{name}: several rows of the roster have this name, so none was filled in"
            + "".join(f". {each.advice}" for each in PLATFORMS if each.advice)
        )
    for group in people.groups:
        if len(group.members) > 1 and not {group.name, *group.members} & sources.keys():
            yield f"{group.name}: a group without a file"
