"""3.1 Swap (5 min, ●○○○○)

- No rank has to go first any more: every rank can run the same lines. What must both ranks of a pair have
  done before either of them waits?
- Issue both transfers, then wait for both. The received tensor needs separate memory (`torch.empty_like(x)`),
  because `x` is in flight. The rank in the middle has no partner.
- partner = world_size - 1 - rank, and a rank that is its own partner returns x. theirs = torch.empty_like(x);
  works = [dist.isend(x, partner), dist.irecv(theirs, partner)]. What do you still need to do before returning
  theirs?
"""

from helpers.checks.author import *
from helpers.checks.rules_transfers import InFlightTogether
from helpers.exercises.nb03_nonblocking_p2p.in_ranks import run_keeping_transfers
from helpers.exercises.nb03_nonblocking_p2p.shared import FAILURE_ADVICE, SIZES, TRANSFERS


def mirror_ranks(case: Case, rank: int) -> tuple[int, ...]:
    partner = case.world_size - 1 - rank
    return () if partner == rank else (partner,)


def case(draw: Draw) -> Case:
    mine = draw.tensors(draw.shape(least=1))
    return Case(
        f"{tuple(mine[0].shape)} of {mine[0].dtype}",
        [(x,) for x in mine],
        right=PerRank(mine[::-1]),
        tolerance=0,
    )


def partner_count(case: Case, rank: int) -> int:
    return len(mirror_ranks(case, rank))


EXERCISE = Exercise(
    case,
    (
        *TRANSFERS,
        Calls("send", partner_count),
        Calls("recv", partner_count),
        Peers(mirror_ranks, "each rank sends to its partner"),
        InFlightTogether(2, "both transfers are in flight together"),
    ),
    failed=FAILURE_ADVICE,
    kind=Kind.MODULE,
    driver=run_keeping_transfers,
    sizes=SIZES,
)
