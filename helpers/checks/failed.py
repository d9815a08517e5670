"""What to say of a run that did not end well, where its cause can be read from the failure itself."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

from helpers.checks.case import Case
from helpers.ranks.failures import Deadlock, RankDied, RankFailed
from helpers.ranks.run import Run


@dataclass(frozen=True)
class Failed:
    """Words for one kind of failure.

    said: a pattern that the failure's text must hold. died: for a rank that was killed, too: a shape that
    differs from rank to rank ends the process. when: a further condition on the case and what was seen.
    """

    said: str
    words: str
    died: bool = False
    when: Callable[[Case, Run], bool] | None = None

    def fits(self, case: Case, run: Run) -> bool:
        failure = run.failure
        if failure is None or (self.when is not None and not self.when(case, run)):
            return False
        if isinstance(failure, RankDied):
            # gloo aborts the process where sizes differ, and its last words are lost with it
            return self.died
        text = str(failure.error) if isinstance(failure, RankFailed) else str(failure)
        return bool(self.said) and re.search(self.said, text) is not None


@dataclass(frozen=True)
class Stuck:
    """Words for a deadlock, of the diagnosis kinds given (all, if none is)."""

    words: str
    kinds: tuple[str, ...] = ()
    when: Callable[[Case, Run], bool] | None = None

    def fits(self, case: Case, run: Run) -> bool:
        failure = run.failure
        if not isinstance(failure, Deadlock) or (self.when and not self.when(case, run)):
            return False
        return not self.kinds or failure.diagnosis.kind in self.kinds
