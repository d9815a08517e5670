"""Rules and shared advice of the exercises of notebook 03."""

from __future__ import annotations

from helpers.checks.author import *
from helpers.checks.rules_transfers import EachIsWaitedFor, NothingBlocks
from helpers.ranks.failures import Deadlock

SIZES = (2, 3, 4, 5, 6, 7, 8)
TRANSFERS = (OnlyCalls(("send", "recv")), NothingBlocks(), EachIsWaitedFor())


def _is_cycle(case: Case, run: Run) -> bool:
    return isinstance(run.failure, Deadlock) and run.failure.diagnosis.kind == "cycle"


FAILURE_ADVICE = (
    CrashAdvice(
        "was changed before wait",
        "A tensor was changed while it was in flight. Until `wait()` returns, nothing may write to a "
        "tensor being sent or received, not even another `irecv`. Receive into a separate tensor, such as "
        "`torch.empty_like(x)`, and write to it only after the wait.",
    ),
    CrashAdvice(
        ".",
        "`isend` and `irecv` return at once, so no rank has to go first: issue all transfers, and only then "
        "wait for the first of them.",
        when=_is_cycle,
    ),
)
