"""2.3 Exchange in pairs (12 min, ●●○○○)

- If both ranks of a pair send first, each send waits for a recv. One of them has to receive first.
- Let the parity of the rank decide who sends first. If the partner would be `world_size` or more, a rank has
  no partner, so it keeps its own tensor.
- theirs = torch.empty_like(x); if rank < partner: send, then recv; else: recv, then send. Return theirs.
"""

from helpers.checks.author import *
from helpers.exercises.nb02_blocking_p2p.shared import SIZES, TRANSFERS


def partners(case: Case, rank: int) -> tuple[int, ...]:
    return (rank ^ 1,) if rank ^ 1 < case.world_size else ()


def case(draw: Draw) -> Case:
    n, mine = draw.ranks, draw.tensors(draw.shape(least=1))
    right = [mine[rank ^ 1 if rank ^ 1 < n else rank] for rank in range(n)]
    return Case(
        f"{tuple(mine[0].shape)} of {mine[0].dtype}",
        [(x,) for x in mine],
        right=PerRank(right),
        tolerance=0,
    )


def partner_count(case: Case, rank: int) -> int:
    return len(partners(case, rank))


EXERCISE = Exercise(
    case,
    (
        *TRANSFERS,
        Calls("send", partner_count),
        Calls("recv", partner_count),
        Peers(partners, "each rank sends to its partner"),
    ),
    sizes=SIZES,
)
