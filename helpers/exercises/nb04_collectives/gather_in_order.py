"""4.3 Gather in order (10 min, ●●○○○, further)

- Write the sample numbers under the parts: rank 0 has 0, p, 2p, ..., rank 1 has 1, p+1, ... In which order
  would you read them off?
- Stack the parts as columns of a matrix by calling `torch.stack(parts, dim=1)`. Its rows, one after the
  other, are the samples in order. Keep the first `total`.
- parts = [torch.empty_like(predictions) for _ in range(world_size)] on dst, None elsewhere;
  dist.gather(predictions, parts, dst=dst); on dst return torch.stack(parts, dim=1).flatten()[:total].
"""

import torch

from helpers.checks.author import *
from helpers.exercises.nb04_collectives.shared import ROOT_ONLY_ADVICE


def case(draw: Draw) -> Case:
    n, total, dst = draw.ranks, draw.length(least=1), draw.rank()
    wanted = draw.tensor((total,))
    each = -(-total // n)
    padded = torch.cat([wanted, draw.tensor((each * n - total,), wanted.dtype)])
    parts = [padded[rank::n].clone() for rank in range(n)]
    return Case(
        f"{total} samples of {wanted.dtype}, to rank {dst}",
        [(part, total, dst) for part in parts],
        right=PerRank([wanted if rank == dst else None for rank in range(n)]),
        facts={"dst": dst},
        tolerance=0,
    )


EXERCISE = Exercise(
    case,
    (WaitsForAll(), OnlyCalls(("gather",)), Root("dst"), Calls("gather", 1)),
    failed=ROOT_ONLY_ADVICE,
)
