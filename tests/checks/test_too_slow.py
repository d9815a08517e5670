"""Use a separate outcome for answers that fail only because of a timing."""

from __future__ import annotations

from helpers.check_result import Outcome
from helpers.checks.case import AllRanks, Case, Finding
from helpers.checks.execution import Execution
from helpers.checks.exercise import Exercise
from helpers.checks.judge import judge
from helpers.ranks.failures import RankTimeout
from helpers.ranks.run import Run
from helpers.trace.events import Trace


def verdict(*findings: Finding | None, failure: RankTimeout | None = None) -> Outcome:
    n = len(findings)
    case = Case("a case", [()] * n, right=AllRanks(lambda got: findings[got], lambda got: None))
    run = Run(n, list(range(n)), [""] * n, Trace(()), failure)
    return judge(Exercise(lambda draw: case), Execution(case, run)).outcome


def test_time_based_finding_means_too_slow() -> None:
    late = Finding("it takes 2 s", rests_on_time=True)
    assert verdict(late, None) is Outcome.TOO_SLOW
    assert verdict(late, Finding("3 is not 4")) is Outcome.WRONG
    assert verdict(None, None) is Outcome.PASSED


def test_wall_time_backstop_means_timed_out() -> None:
    assert verdict(None, None, failure=RankTimeout(8.0, ())) is Outcome.TIMED_OUT
    assert verdict(None, None, failure=RankTimeout(8.0, (), True)) is Outcome.TOO_SLOW
