"""Define the results of checks: frozen data for the notebook, `course check` and a gradebook."""

from __future__ import annotations

from dataclasses import dataclass, fields
from enum import StrEnum
from typing import TYPE_CHECKING, Any

import msgspec

if TYPE_CHECKING:
    from helpers.ranks.run import Run


_MAX_UNFILTERED_RUNS, _MAX_READABLE_RANKS = 8, 4


class Outcome(StrEnum):
    """The outcome of checking an answer, in the same words for learners and gradebooks."""

    PASSED = "passed"
    WRONG = "wrong"
    FORBIDDEN = "forbidden call"
    NOT_ATTEMPTED = "not attempted"
    UNREADABLE = "cannot be read"
    CRASHED = "crashed"
    DEADLOCKED = "deadlocked"
    TIMED_OUT = "timed out"
    TOO_SLOW = "too slow"
    """The answer only failed because of a timing, and a busy machine may be the cause.

    A grader never stores this outcome as final.
    """
    TOO_MUCH_MEMORY = "too much memory"
    TOO_MANY_PROCESSES = "too many processes"
    TOO_MANY_FILES = "too many files"
    DISK_FULL = "disk full"
    FLOODED = "flooded"
    FAULT = "harness fault"


class Row(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """One rank of one case: its inputs, the expected value, and the returned value.

    problem: "" if the value is right. A record's file stores a row as a list of its fields.
    """

    rank: int
    given: str
    expected: str
    got: str
    problem: str = ""


@dataclass(frozen=True, kw_only=True)
class CaseRecord:
    """One case, in the form stored in a record and read by every report.

    hidden: whether the case belongs to a grader, so that its stored record reveals neither inputs nor output.
    outcome: an `Outcome`. It is a string because a record may come from a different version.
    credit: the answer's share of the case's points, from 0 to 1.
    rows: a row for each rank, if a value is wrong.
    broken: a sentence for each violated rule on traffic.
    message: text about all ranks, either on the run's end or on a problem of all values together.
    advice: the first thing to look at.
    """

    label: str
    hidden: bool
    outcome: str
    credit: float
    rows: tuple[Row, ...] = ()
    broken: tuple[str, ...] = ()
    message: str = ""
    advice: str = ""

    @property
    def passed(self) -> bool:
        return self.outcome == Outcome.PASSED


@dataclass(frozen=True, kw_only=True)
class CaseVerdict(CaseRecord):
    """The verdict on one case, including the parts that are not stored.

    mistake: the title of the known mistake that gave the advice.
    given: for a pure function, the arguments of the shown case.
    world: the run of the case's whole world, if other cases also ran in this world.
    drawn_message: for a deadlock, the message for a reader who sees a drawing of the ranks' waits.
    """

    outcome: Outcome
    hidden: bool = False
    credit: float = 0.0
    run: Run | None = None
    world: Run | None = None
    mistake: str = ""
    broken_rules: tuple[str, ...] = ()
    given: tuple[Any, ...] = ()
    drawn_message: str = ""

    def as_record(self) -> CaseRecord:
        """Return the stored part."""
        return CaseRecord(**{field.name: getattr(self, field.name) for field in fields(CaseRecord)})


@dataclass(frozen=True)
class CheckResult:
    """The result of `check`.

    run: the run to look at, for example with `timeline(result.run)`. It is the run of the first failed case
    or, if all passed, of the largest case (with few ranks if there are many cases).
    notes: repairs made to find the answer, in plain words.
    source: the answer with all code that it uses, as in a file; "" if there is none.
    given: for a pure function, the arguments in the first failed case.
    unjudged: a returned value on which the exercise's functions failed. Only the reference solution can show
    whether the value or the functions are wrong.
    sizes: the world sizes of the cases, if ranks called the answer.
    next_step, link: a learner's next step, and the address at which JupyterLab opens it.
    """

    name: str
    heading: str
    outcome: Outcome
    cases: tuple[CaseVerdict, ...] = ()
    message: str = ""
    points: float = 0.0
    out_of: float = 0.0
    notes: tuple[str, ...] = ()
    rules: tuple[str, ...] = ()
    source: str = ""
    given: tuple[Any, ...] = ()
    unjudged: str = ""
    sizes: tuple[int, ...] = ()
    next_step: str = ""
    link: str = ""

    @property
    def passed(self) -> bool:
        return self.outcome is Outcome.PASSED

    @property
    def attempted(self) -> bool:
        """Whether there was a readable answer. If not, the check is not recorded."""
        return self.outcome not in {Outcome.NOT_ATTEMPTED, Outcome.UNREADABLE}

    @property
    def mistake(self) -> str:
        """The title of the known mistake that explains the shown case, or ""."""
        return next((case.mistake for case in self.cases if case.mistake), "")

    @property
    def run(self) -> Run | None:
        # after a failure, a learner wants to see the failed case
        for case in self.cases:
            if not case.passed:
                return case.run
        runs = [case.run for case in self.cases if case.run is not None]
        if (
            len(runs) > _MAX_UNFILTERED_RUNS
        ):  # a picture of four ranks is easier to read than one of eight
            runs = [run for run in runs if run.world_size <= _MAX_READABLE_RANKS] or runs
        return max(runs, key=lambda run: run.world_size) if runs else None
