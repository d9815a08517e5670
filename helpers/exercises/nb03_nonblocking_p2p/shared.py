"""What exercises of notebook 03 share: their rules, and what may be said of every one of them."""

from __future__ import annotations

from helpers.checks.author import *
from helpers.checks.rules_transfers import EachIsWaitedFor, NothingBlocks
from helpers.ranks.failures import Deadlock
from helpers.ranks.run import Run

SIZES = (2, 3, 4, 5, 6, 7, 8)
TRANSFERS = (OnlyCalls(("send", "recv")), NothingBlocks(), EachIsWaitedFor())


def _in_a_circle(case: Case, run: Run) -> bool:
    return isinstance(run.failure, Deadlock) and run.failure.diagnosis.kind == "cycle"


FAILED = (
    Failed(
        "was changed before wait",
        "Between issue and wait() a tensor belongs to its transfer: nothing may write to one that is sent, "
        "no irecv either, nor to one that receives. Receive into a tensor of its own, such as "
        "torch.empty_like(x), and add up after the wait.",
    ),
    Failed(
        ".",
        "With isend and irecv no rank has to receive first, as they return at once: issue all transfers, "
        "and only then wait for the first of them.",
        when=_in_a_circle,
    ),
)
