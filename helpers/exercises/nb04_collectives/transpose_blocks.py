"""4.6 Transpose blocks (15 min, ●●●○○)

- Draw a matrix of 2 x 2 blocks, a row of blocks on each rank. Which of your blocks does the other rank
  need? And what must happen inside a block?
- Block j of your rows goes to rank j: `x.chunk(world_size, dim=1)`. Each block is transposed, by the sender
  or by the receiver. What comes from rank i are columns of your result.
- send = [b.T.contiguous() for b in x.chunk(world_size, dim=1)]; got = [torch.empty_like(b) for b in send];
  dist.all_to_all(got, send); return torch.cat(got, dim=1).
"""

import torch

from helpers.checks.author import *


def case(draw: Draw) -> Case:
    n = draw.ranks
    rows, columns = n * draw.whole(1, 3), n * draw.whole(1, 3)
    whole = draw.tensor((rows, columns))
    given, wide = whole.chunk(n), columns // n
    blocks = [torch.stack([part[:, r * wide : (r + 1) * wide] for part in given]) for r in range(n)]
    right = list(whole.T.contiguous().chunk(n))

    def gives(make: object, words: str) -> Mistake:
        return Mistake(Each([make(b) for b in blocks]), words)  # type: ignore[operator]

    untransposed = "The right blocks have come, but each must be transposed in itself as well."
    return Case(
        f"a {rows}x{columns} matrix of {whole.dtype}",
        [(part.clone(),) for part in given],
        right=Each(right),
        mistakes=[
            gives(lambda b: torch.cat(list(b), dim=1), untransposed),
            gives(lambda b: torch.cat(list(b)), untransposed),
            gives(
                lambda b: torch.cat([one.T for one in b]),
                "Each block is right. They belong side by side: `torch.cat(..., dim=1)`.",
            ),
            gives(
                lambda b: torch.cat([one.reshape(wide, -1) for one in b], dim=1),
                "`reshape` and `view` do not transpose: they keep the elements in their order.",
            ),
            Mistake(
                lambda got, rank: (
                    isinstance(got, torch.Tensor)
                    and got.shape == right[rank].shape
                    and torch.equal(got.flatten().sort()[0], right[rank].flatten().sort()[0])
                ),
                "The right elements, in wrong places: is a tensor that you hand in, or one that "
                "receives, not "
                "contiguous? `torch.empty_like` of a transposed block is one; make it by "
                "`torch.empty(rows, columns, dtype=x.dtype)`.",
            ),
            Mistake(
                lambda got, rank: (
                    isinstance(got, torch.Tensor) and (got.dim() != 2 or got.shape[0] != wide)
                ),
                "The rows of the transposed matrix were columns of `x`: cut `x` by columns, "
                "`x.chunk(world_size, dim=1)`.",
            ),
        ],
        facts={"bytes": given[0].nbytes},
        tolerance=0,
    )


EXERCISE = Exercise(
    case,
    (
        Awaited(),
        OnlyCalls(("all_to_all",)),
        Count("all_to_all", 1),
        HandedIn("bytes", "each element is handed in once", "Send each rank its block only."),
    ),
    failed=(
        Failed(
            "list size",
            "One block goes to each of the {n} ranks, one comes from each: cut `x` by columns, "
            "`x.chunk(world_size, dim=1)`.",
        ),
        Failed(
            "contiguous",
            "A block of columns and a transposed block are views. `.contiguous()` makes a copy "
            "whose elements "
            "lie side by side.",
        ),
    ),
)
