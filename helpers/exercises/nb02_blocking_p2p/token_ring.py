"""2.2 Token ring (15 min, ●●○○○)

- One rank must begin, because otherwise all ranks wait for each other. Which rank has the token? To send a
  number, put it into a tensor: `torch.tensor([token])`.
- The next rank is `(rank + 1) % world_size`, and the previous rank is `(rank - 1) % world_size`. Rank 0 sends
  first and receives last, while the others receive first.
- Put the number into a tensor: `t = torch.tensor([token])`. Rank 0: send t to next, recv into t from
  previous. Others: recv into t, keep `t.item()`, send `t + rank`.
"""

from itertools import accumulate

from helpers.checks.author import *
from helpers.exercises.nb02_blocking_p2p.shared import SIZES, TRANSFERS


def case(draw: Draw) -> Case:
    n, size = draw.ranks, draw.of(0, 100, 1 << 24, 1 << 40, 1 << 53)
    token = draw.of(1, -1) * (size + draw.whole(0, 49) * 2 + 1) if size else 0
    others = [draw.whole(-999, 999) for _ in range(n)]

    received = list(accumulate(range(1, n), initial=token))
    return Case(
        f"token {token}",
        [(others[rank] if rank else token,) for rank in range(n)],
        right=PerRank([received[-1], *received[:-1]]),
        tolerance=0,
    )


EXERCISE = Exercise(
    case,
    (
        *TRANSFERS,
        Calls("send", 1),
        Calls("recv", 1),
        Peers(lambda case, rank: ((rank + 1) % case.world_size,), "each rank sends to the next"),
    ),
    sizes=SIZES,
)
