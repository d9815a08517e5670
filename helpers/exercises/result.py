"""What a check found: frozen data that the notebook, `course check` and a gradebook all read."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from helpers.ranks.run import Run


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
    OUT_OF_MEMORY = "out of memory"
    FLOODED = "flooded"


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

    rows: one for each rank. broken: the rules on traffic that do not hold, a sentence each.
    advice: the first thing to look at. partial: the share of the case's points that right values and
    the rules that hold are worth where some rule does not.
    """

    label: str
    outcome: Outcome
    rows: tuple[Row, ...] = ()
    broken: tuple[str, ...] = ()
    message: str = ""
    advice: str = ""
    run: Run | None = None
    partial: float = 0.0

    @property
    def passed(self) -> bool:
        return self.outcome is Outcome.PASSED

    @property
    def credit(self) -> float:
        """The share of the case's points that the answer gets, from 0 to 1."""
        return 1.0 if self.passed else self.partial


@dataclass(frozen=True)
class CheckResult:
    """What `check` found. A result that stands at a cell's end draws itself.

    run: the run to look at, with `timeline(result.run)` and the like: that of the first case that
    failed, or else of the case with the most ranks. notes: repairs made to find the answer, in plain words.
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

    @property
    def passed(self) -> bool:
        return self.outcome is Outcome.PASSED

    @property
    def run(self) -> Run | None:
        for case in self.cases:
            if not case.passed:
                return case.run
        runs = [case.run for case in self.cases if case.run is not None]
        return max(runs, key=lambda run: run.world_size) if runs else None

    def __repr__(self) -> str:
        from helpers.views.verdict import verdict_text

        return verdict_text(self)

    def _repr_html_(self) -> str:
        from helpers.views.verdict import verdict_html

        return verdict_html(self)
