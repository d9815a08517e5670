"""3.4 Shift with a batch (10 min, ●●○○○, further)

- Your tensor goes to the rank that is `by` places further on. From which rank do you receive?
- `dist.P2POp(dist.isend, x, peer)` describes a transfer without starting it. Put two of them into a list. In
  which case is a rank its own target?
- if by % world_size == 0: return x; box = empty_like(x); ops = [P2POp(dist.isend, x, (rank + by) %
  world_size), P2POp(dist.irecv, box, (rank - by) % world_size)]; for work in dist.batch_isend_irecv(ops):
  work.wait(); return box.
"""

from helpers.checks.author import *
from helpers.checks.rules_transfers import InFlightTogether
from helpers.exercises.nb03_nonblocking_p2p.in_ranks import BATCH, run_recording_batches
from helpers.exercises.nb03_nonblocking_p2p.shared import FAILURE_ADVICE, SIZES, TRANSFERS


def case(draw: Draw) -> Case:
    n, mine = draw.ranks, draw.tensors(draw.shape(least=1))
    by = draw.of(1, -1, 2, n, -n, 0, n + 1, -2 * n - 1, 1000 * n + 1, draw.whole(-99, 99))
    return Case(
        f"{tuple(mine[0].shape)} of {mine[0].dtype}, by {by}",
        [(x, by) for x in mine],
        right=PerRank([mine[(rank - by) % n] for rank in range(n)]),
        facts={"by": by},
        tolerance=0,
    )


def transfer_count(case: Case, rank: int) -> int:
    return int(case.facts["by"] % case.world_size != 0)


def find_wrong_batch(trace: Trace, case: Case) -> str:
    for event in trace.calls:
        if event.op in {"send", "recv"} and event.call != "batch_isend_irecv":
            return (
                f"rank {event.rank} calls {event.call}{at(event)}; pass both transfers to one "
                "batch_isend_irecv instead."
            )
    for rank in range(case.world_size):
        batches = [e.call for e in trace.of(rank) if e.op == "span" and e.call.startswith(BATCH)]
        if batches and batches != [f"{BATCH} of 2"]:
            return f"rank {rank} starts a {', a '.join(batches)}; pass both transfers to one call."
    return ""


EXERCISE = Exercise(
    case,
    (
        *TRANSFERS,
        Calls("send", transfer_count),
        Calls("recv", transfer_count),
        Peers(
            lambda case, rank: ((rank + case.facts["by"]) % case.world_size,),
            "each rank sends to the rank `by` places after it",
        ),
        Predicate(find_wrong_batch, "one batch_isend_irecv takes both transfers"),
        InFlightTogether(2, "both transfers are in flight together"),
    ),
    failed=FAILURE_ADVICE,
    kind=Kind.MODULE,
    driver=run_recording_batches,
    sizes=SIZES,
)
