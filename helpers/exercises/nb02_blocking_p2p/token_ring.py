"""2.2 Token ring (15 min, ●●○○○)

- One rank must begin, or all wait for each other. Which one has the token? And a number travels as a
  tensor: `torch.tensor([token])`.
- The next rank is `(rank + 1) % world_size`, the one before is `(rank - 1) % world_size`. Rank 0 sends
  first and receives last; the others receive first.
- Put the number into a tensor: `t = torch.tensor([token])`. Rank 0: send t to next, recv into t from
  previous. Others: recv into t, keep `t.item()`, send `t + rank`.
"""

from collections.abc import Callable
from itertools import accumulate

import torch

from helpers.checks.author import *
from helpers.exercises.nb02_blocking_p2p.shared import SIZES, TRANSFERS

ONLY_HIS = "Only rank 0's `token` counts: the others return what they receive."


def case(draw: Draw) -> Case:
    n, size = draw.ranks, draw.of(0, 100, 1 << 24, 1 << 40, 1 << 53)
    token = draw.of(1, -1) * (size + draw.whole(0, 49) * 2 + 1) if size else 0
    others = [draw.whole(-999, 999) for _ in range(n)]

    def ring(add: Callable[[int], int], start: int = token) -> list[int]:
        """Give what each rank receives if rank r adds add(r)."""
        got = list(accumulate(map(add, range(1, n)), initial=start))
        return [got[-1], *got[:-1]]

    right = ring(lambda r: r)

    def as_floats(dtype: torch.dtype) -> list[int]:
        """Give what each rank receives if the token travels in this dtype."""
        got = [torch.tensor([token], dtype=dtype)]
        for r in range(1, n):
            got.append(got[-1] + r)
        return [int(t) for t in [got[-1], *got[:-1]]]

    back = list(accumulate(range(n - 1, 0, -1), initial=token))
    return Case(
        f"token {token}",
        [(others[rank] if rank else token,) for rank in range(n)],
        right=Each(right),
        mistakes=[
            Mistake(
                Each([token, *right[1:]]),
                "Rank 0 returns the token that it sent, not the one that came back.",
            ),
            Mistake(Each([token] * n), "Nobody adds: each rank adds its own rank."),
            Mistake(
                Each([right[0], *[right[r] + r for r in range(1, n)]]),
                "Return the token as it was received, before the rank is added.",
            ),
            Mistake(Each(ring(lambda r: 1)), "Each rank adds 1 here; it has to add its own rank."),
            Mistake(Each([right[0], *others[1:]]), ONLY_HIS),
            Mistake(
                Each([right[0], *[others[r] + right[r] - token for r in range(1, n)]]), ONLY_HIS
            ),
            Mistake(
                Each([others[-1] + n - 1, token, *[others[r - 1] + r - 1 for r in range(2, n)]]),
                "The rank before has added its rank to its own `token`: it must add to what it received.",
            ),
            *(
                Mistake(
                    Each(as_floats(dtype)),
                    f"A whole number of this size is not exact as {name}: send int64, "
                    "`torch.tensor([token])`.",
                )
                for dtype, name in ((torch.float32, "float32"), (torch.float64, "float64"))
            ),
            Mistake(
                Each(back[::-1]),
                "The token goes round the other way: the next rank is `(rank + 1) % world_size`.",
            ),
        ],
        tolerance=0,
    )


EXERCISE = Exercise(
    case,
    (
        *TRANSFERS,
        Count("send", 1),
        Count("recv", 1),
        Peers(lambda case, rank: ((rank + 1) % case.world_size,), "each rank sends to the next"),
    ),
    sizes=SIZES,
)
