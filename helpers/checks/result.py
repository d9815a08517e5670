"""What a check found: frozen data that the notebook, `course check` and a gradebook all read."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from helpers.ranks.run import Run


_MANY, _READABLE = 8, 4


class Outcome(Enum):
    """What became of an answer. One word for the learner, one for the gradebook, the same one."""

    PASSED = "passed"
    WRONG = "wrong"
    FORBIDDEN = "forbidden call"
    NOT_ATTEMPTED = "not attempted"
    UNREADABLE = "cannot be read"
    CRASHED = "crashed"
    DEADLOCKED = "deadlocked"
    TIMED_OUT = "timed out"
    TOO_SLOW = "too slow"
    """Measured by the clock alone: a busy machine may be the cause. A grader never keeps it."""
    OUT_OF_MEMORY = "out of memory"
    FLOODED = "flooded"
    FAULT = "harness fault"


@dataclass(frozen=True)
class Row:
    """One rank of one case: what it was given, had to return, and returned. problem: "" if right."""

    rank: int
    given: str
    expected: str
    got: str
    problem: str = ""


@dataclass(frozen=True)
class CaseVerdict:
    """What became of one case.

    rows: one for each rank, where a value is wrong. broken: the rules on traffic that do not hold, a
    sentence each. message: what belongs to no single rank: how the run ended, or what is wrong with all
    values together. advice: the first thing to look at. mistake: the title of the known mistake whose
    advice it is. given: of a pure function, the arguments of the case that is shown.
    partial: the share of the case's points that right values and the rules that hold are
    worth where some rule does not. world: all that was run in the world in which the case was tried, if
    that was more than the case.
    """

    label: str
    outcome: Outcome
    rows: tuple[Row, ...] = ()
    broken: tuple[str, ...] = ()
    message: str = ""
    advice: str = ""
    run: Run | None = None
    partial: float = 0.0
    world: Run | None = None
    mistake: str = ""
    broken_rules: tuple[str, ...] = ()
    given: tuple[Any, ...] = ()

    @property
    def passed(self) -> bool:
        return self.outcome is Outcome.PASSED

    @property
    def credit(self) -> float:
        """The share of the case's points that the answer gets, from 0 to 1."""
        return 1.0 if self.passed else self.partial


@dataclass(frozen=True)
class CheckResult:
    """What `check` found.

    run: the run to look at, with `timeline(result.run)` and the like: that of the first case that
    failed, or else of the largest case, of few ranks where there are many cases. notes: repairs made to
    find the answer, in plain words. source: the answer with all that it uses, as a file may hold it;
    "" where there is none. given: of a pure function, the arguments in the first case that failed.
    unjudged: what came back, where the exercise's own functions failed over it: whether it or they are wrong,
    only the reference solution can tell. sizes: the world sizes of the cases, if ranks called the answer.
    following, link: what comes next for a learner, and the address at which JupyterLab opens it.
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
    following: str = ""
    link: str = ""

    @property
    def passed(self) -> bool:
        return self.outcome is Outcome.PASSED

    @property
    def mistake(self) -> str:
        """The title of the known mistake that explains the case that is shown, or ""."""
        return next((case.mistake for case in self.cases if case.mistake), "")

    @property
    def run(self) -> Run | None:
        # what a learner wants to look at next is what went wrong
        for case in self.cases:
            if not case.passed:
                return case.run
        runs = [case.run for case in self.cases if case.run is not None]
        if len(runs) > _MANY:  # a picture of four ranks is easier to read than one of eight
            runs = [run for run in runs if run.world_size <= _READABLE] or runs
        return max(runs, key=lambda run: run.world_size) if runs else None
