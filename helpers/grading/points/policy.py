"""Read a class's points policy from `policy.toml`: weights, core, deadlines, dropped notebooks.

`command` reads the policy before grading. `counted` and `reports.standing` apply it.
"""

from __future__ import annotations

import math
import re
import tomllib
from collections.abc import Callable, Iterator, Mapping
from datetime import date, datetime, time, timedelta
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar

import msgspec

from helpers.checks.headings import (
    Heading,
    UnknownExercise,
    find_heading,
    headings,
    match_notebook,
)
from helpers.grading.grade_options import CannotGrade
from helpers.grading.table import TableError, read_text
from helpers.views.plain import normalize_name

FILE = "policy.toml"
_FIRST_YEAR, _LAST_YEAR = 1970, 9000
_FORMAT_HINT = (
    "Write a date as 2026-10-25 or, with a time, as 2026-10-25T18:00:00, and a number with a point, as 0.1, "
    "both without quotes"
)
_DAY_S = 24 * 60 * 60.0
T = TypeVar("T")

_Share = Annotated[float, msgspec.Meta(ge=0, le=1)]
_Count = Annotated[int, msgspec.Meta(ge=0, le=1000)]
_Points = Annotated[float, msgspec.Meta(ge=0, le=10_000)]


class PolicyError(CannotGrade):
    """A policy cannot be used. The message is one line with the file, the line, the problem and advice."""


class LatePolicy(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The cost of handing in late.

    Args:
        free_days: A learner's late days without cost, for all notebooks together.
        per_day: The cost of each additional day, as a share of a notebook's points.
        extensions: {learner: days added to each deadline}.
    """

    free_days: _Count = 0
    per_day: _Share = 0.1
    extensions: dict[str, _Count] = {}


class Policy(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Rules for counting points.

    Args:
        weights: "effort" (minutes and difficulty) or "points" (the check's points).
        further: Whether exercises beyond the core are a "bonus", count like exercises of the core ("counts"),
            or are "ignored".
        bonus_weight: The worth of a bonus, as a share of the same exercise's weight in the core.
        most_bonus: The largest bonus of a notebook, as a share of the points of its core.
        drop_lowest: The number of notebooks that do not count for each learner, starting with the smallest
            share of points.
        weight: Weights of single exercises, which replace the weights from the rule.
        as_core, as_further: Exercises that this class adds to the core or removes from it.
        deadlines: The deadline of each notebook.
    """

    weights: Literal["effort", "points"] = "effort"
    further: Literal["bonus", "counts", "ignored"] = "bonus"
    bonus_weight: _Share = 0.25
    most_bonus: _Share = 0.2
    drop_lowest: _Count = 0
    weight: dict[str, _Points] = {}
    as_core: list[str] = []
    as_further: list[str] = []
    deadlines: dict[str, datetime] = {}
    late: LatePolicy = LatePolicy()

    def weight_of(self, name: str, own: float) -> float:
        """Return an exercise's weighted points. own: the points given by its check."""
        if self.is_further(name) and self.further == "ignored":
            return 0.0
        heading = headings().get(name)
        if name in self.weight:
            return self.weight[name]
        weight = own if heading is None or self.weights == "points" else effort_points(heading)
        return weight * self.bonus_weight if self.is_bonus(name) else weight

    def is_further(self, name: str) -> bool:
        """Return whether an exercise is beyond this class's core."""
        if name in self.as_core or name in self.as_further:
            return name in self.as_further
        heading = headings().get(name)
        return heading is not None and heading.further

    def is_bonus(self, name: str) -> bool:
        """Return whether an exercise's points are not part of the maximum number of points."""
        return self.further != "counts" and self.is_further(name)

    def days_late(self, learner: str, notebook: str, at: float | None) -> int:
        """Return the number of days by which a file is late, rounded up. at: seconds since the epoch.

        Days are calendar days, so a day on which the clocks change has 23 or 25 hours.
        """
        due = self.deadlines.get(notebook)
        if due is None or at is None:
            return 0
        due += timedelta(days=self.late.extensions.get(learner, 0))
        # use whole seconds, so that a file handed in during the deadline's last second is in time
        second = math.floor(at)

        def is_late(days: int) -> bool:
            # A time without a zone is in this machine's time zone.
            return second > (due + timedelta(days=days)).timestamp()

        days = max(0, int((second - due.timestamp()) / _DAY_S) - 1)
        while is_late(days):
            days += 1
        return days


DEFAULT_POLICY = Policy()


def effort_points(heading: Heading) -> float:
    """Return minutes times difficulty over five: 1 for 5 minutes of ●○○○○, 20 for 25 minutes of ●●●●○."""
    return max(1.0, float(round(heading.minutes * heading.difficulty / 5)))


def read_policy(path: Path, learners: Mapping[str, str] | None = None) -> Policy:
    """Read a policy file. Raise PolicyError if it cannot be used.

    learners: {text that may denote a learner: the learner's name}, used to check extensions; None if the
    class is not known.
    """
    try:
        text = read_text(path, "The policy")
    except TableError as error:
        raise PolicyError(str(error)) from None
    try:
        given = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        what, _, where = str(error).rpartition(" (at ")
        at = re.match(r"line (\d+)", where)
        line = int(at[1]) if at else len(text.splitlines())
        raise PolicyError(
            f"{path}, line {line}: this is not TOML: {what}. {_FORMAT_HINT}."
        ) from None
    # the file has thousands of nested levels, or a number with thousands of digits
    except (RecursionError, ValueError):
        raise PolicyError(
            f"{path} is not a policy: it is nested too deeply, or contains a number with too many "
            f"digits."
        ) from None
    if isinstance(due := given.get("deadlines"), dict):
        given["deadlines"] = {name: _end_of_day(each) for name, each in due.items()}
    # convert one entry at a time, because msgspec does not report a key inside a table
    for key, alone in _entries(given):
        try:
            msgspec.convert(alone, Policy)
        except msgspec.ValidationError as error:
            what = str(error).partition(" - at ")[0]
            if re.search("datetime|`(float|int)`, got `str`", what):
                what = f"expected a {'date' if 'datetime' in what else 'number'}. {_FORMAT_HINT}"
            raise _error(path, text, key, f"{key}: {what}") from None
    policy = msgspec.convert(given, Policy)

    def resolve_keys(find_name: Callable[[str], str], values: Mapping[str, T]) -> dict[str, T]:
        """Replace the keys of `values` with the course's names. Raise PolicyError if a name occurs twice."""
        known: dict[str, T] = {}
        for key, value in values.items():
            try:
                name = find_name(key)
            except UnknownExercise as error:
                raise _error(path, text, key, str(error.args[0]).rstrip(".")) from None
            if name in known:
                raise _error(path, text, key, f"{name} is listed twice, once in a different form")
            known[name] = value
        return known

    for name, due in policy.deadlines.items():
        if not _FIRST_YEAR <= due.year <= _LAST_YEAR:
            raise _error(path, text, name, f"{due.date()} cannot be a deadline")
    extensions = policy.late.extensions
    if learners is not None:
        for learner in extensions:
            if normalize_name(learner) not in learners:
                raise _error(path, text, learner, f"no learner is called {learner!r}")
        extensions = {learners[normalize_name(name)]: days for name, days in extensions.items()}
    core, further = (
        list(resolve_keys(_exercise, dict.fromkeys(each)))
        for each in (policy.as_core, policy.as_further)
    )
    for name in {*core} & {*further}:
        raise _error(path, text, "as_further", f"{name} is also in as_core")
    return msgspec.structs.replace(
        policy,
        weight=resolve_keys(_exercise, policy.weight),
        as_core=core,
        as_further=further,
        deadlines=resolve_keys(match_notebook, policy.deadlines),
        late=msgspec.structs.replace(policy.late, extensions=extensions),
    )


def _entries(values: Mapping[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield each key and its value, inside the tables that contain it, but without their other keys."""
    for key, value in values.items():
        if isinstance(value, dict) and value:
            yield from ((inner, {key: alone}) for inner, alone in _entries(value))
        else:
            yield key, {key: value}


def _end_of_day(due: Any) -> Any:
    """Return the end of the day if `due` is only a date."""
    is_date = isinstance(due, date) and not isinstance(due, datetime)
    return datetime.combine(due, time(23, 59, 59)) if is_date else due


def _exercise(name: str) -> str:
    return find_heading(name).name


def _error(path: Path, text: str, key: str, problem: str) -> PolicyError:
    # tomllib does not provide positions, so report the first line that contains the key.
    named = re.compile(rf"""(?<![\w]){re.escape(key)}(?![\w])""")
    found = (at for at, line in enumerate(text.splitlines(), 1) if named.search(line))
    return PolicyError(f"{path}, line {next(found, 1)}: {problem}.")


def describe_policy(policy: Policy) -> tuple[str, ...]:
    """Return sentences that explain how points are counted, for every page."""
    weights = {
        "effort": "An exercise is worth its minutes times its difficulty (1 to 5), divided by 5.",
        "points": "An exercise is worth the points given by its check.",
    }
    further = {
        "bonus": 'Exercises marked "further" are a bonus: they count '
        f"{policy.bonus_weight:.0%} of their weight, up to {policy.most_bonus:.0%} of the points of a "
        "notebook's core.",
        "counts": 'Exercises marked "further" count like all others.',
        "ignored": 'Exercises marked "further" do not count.',
    }
    said = [weights[policy.weights], further[policy.further]]
    if policy.weight:
        said.append("Some exercises have separate weights.")
    if policy.drop_lowest:
        count = policy.drop_lowest
        said.append(
            "The notebook with the smallest share of its points is dropped."
            if count == 1
            else f"The {count} notebooks with the smallest shares of their points are dropped."
        )
    if policy.deadlines:
        late = policy.late
        free = f", after {late.free_days} free late days in all" if late.free_days else ""
        said.append(
            f"Each day after a deadline costs {100 * late.per_day:g} % of a notebook{free}."
        )
    return tuple(said)
