"""Advice for failed runs whose failure shows the cause."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

from helpers.checks.case import Case
from helpers.ranks.failures import Deadlock, RankDied, RankFailed
from helpers.ranks.run import Run


@dataclass(frozen=True)
class CrashAdvice:
    """Advice for one kind of failure.

    error_pattern: a pattern that must match the failure's text. applies_if_killed: whether the advice also
    applies if a rank was killed, for example because shapes differ between ranks. when: a further condition
    on the case and the run.
    """

    error_pattern: str
    advice: str
    applies_if_killed: bool = False
    when: Callable[[Case, Run], bool] | None = None

    def applies_to(self, case: Case, run: Run) -> bool:
        failure = run.failure
        if failure is None or (self.when is not None and not self.when(case, run)):
            return False
        if isinstance(failure, RankDied):
            # if sizes differ, gloo aborts the process, and its message is lost
            return self.applies_if_killed
        text = str(failure.error) if isinstance(failure, RankFailed) else str(failure)
        return bool(self.error_pattern) and re.search(self.error_pattern, text) is not None


@dataclass(frozen=True)
class HangAdvice:
    """Advice for a deadlock of one of these diagnosis kinds, or of any kind if none is given."""

    advice: str
    kinds: tuple[str, ...] = ()
    when: Callable[[Case, Run], bool] | None = None

    def applies_to(self, case: Case, run: Run) -> bool:
        failure = run.failure
        if not isinstance(failure, Deadlock) or (self.when and not self.when(case, run)):
            return False
        return not self.kinds or failure.diagnosis.kind in self.kinds
