"""4.3 Gather in order (10 min, ●●○○○, further)

- Write the sample numbers under the parts: rank 0 has 0, p, 2p, ..., rank 1 has 1, p+1, ... In which order
  would you read them off?
- Stack the parts as columns of a matrix: `torch.stack(parts, dim=1)`. Its rows, one after the other, are
  the samples in order. Cut after `total`.
- parts = [torch.empty_like(predictions) for _ in range(world_size)] on dst, None elsewhere;
  dist.gather(predictions, parts, dst=dst); on dst return torch.stack(parts, dim=1).flatten()[:total].
"""

import torch

from helpers.checks.author import *
from helpers.exercises.nb04_collectives.shared import ON_ROOT_ONLY, SIZES


def case(draw: Draw) -> Case:
    n, total, dst = draw.ranks, draw.length(least=1), draw.rank()
    wanted = draw.tensor((total,))
    each = -(-total // n)
    padded = torch.cat([wanted, draw.tensor((each * n - total,), wanted.dtype)])
    parts = [padded[rank::n].clone() for rank in range(n)]
    in_a_row = torch.cat(parts)

    def on_dst(value: torch.Tensor) -> Each:
        return Each([value if rank == dst else None for rank in range(n)])

    return Case(
        f"{total} samples of {wanted.dtype}, to rank {dst}",
        [(part, total, dst) for part in parts],
        right=on_dst(wanted),
        mistakes=[
            Mistake(on_dst(in_a_row[:total]), NOT_DEALT),
            Mistake(on_dst(in_a_row), NOT_DEALT),
            Mistake(
                on_dst(padded),
                "There are more predictions than samples: the last ones are padding.",
            ),
            Mistake(
                lambda got, rank: (
                    rank == dst
                    and isinstance(got, torch.Tensor)
                    and any(same(part.repeat_interleave(n)[: len(got)], got, 0) for part in parts)
                ),
                "All parts hold the same: `[t] * n` is one tensor, n times. Make one for each rank, in a "
                "comprehension.",
            ),
        ],
        facts={"dst": dst},
        tolerance=0,
    )


NOT_DEALT = (
    "The parts stand one after the other, but rank 0 has samples 0, {n}, ...: they must be dealt back like "
    "cards."
)
EXERCISE = Exercise(
    case,
    (Awaited(), OnlyCalls(("gather",)), Root("dst"), Count("gather", 1)),
    failed=(
        *ON_ROOT_ONLY,
        Failed(
            SIZES,
            (
                "All parts of one gather have the same shape: hand in the padding too, and cut at "
                "`total` on `dst`."
            ),
            died=True,
        ),
    ),
)
