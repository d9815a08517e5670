"""4.5 Global argmax (15 min, ●●●○○, further)

- `all_reduce` with MAX gives the largest value, but not whose it is. Which collective keeps the values of
  the ranks apart?
- `all_gather` of each rank's own maximum: then every rank can find the owner. The owner alone knows the
  index; one more collective tells the others.
- tops = [torch.empty_like(x.max()) for _ in range(world_size)]; dist.all_gather(tops, x.max()); owner =
  int(torch.stack(tops).argmax()); index = x.argmax(); dist.broadcast(index, src=owner); return owner,
  index.item().
"""

import torch

from helpers.checks.author import *

NEAR_2_60 = 1 << 60
"""There two neighbouring whole numbers are one and the same float64."""


def case(draw: Draw) -> Case:
    n, kind = draw.ranks, draw.of("different", "all negative", "equal largest", "very large")
    dtype = (
        torch.int64
        if kind == "very large"
        else draw.dtype(torch.float32, torch.float64, torch.int64)
    )
    lengths, owner = [draw.whole(1, 6) for _ in range(n)], draw.rank()
    if kind == "equal largest" and n > 1:  # a later rank has it, too, and at a lower index
        owner = min(owner, n - 2)
        lengths[owner] += 1
    parts = [torch.tensor(draw.rng.sample(range(2, 90), k), dtype=dtype) for k in lengths]
    if kind == "all negative":
        parts = [part - 100 for part in parts]
    if kind == "very large":
        parts = [part % 3 + NEAR_2_60 for part in parts]
    top = max(part.max().item() for part in parts) + 1
    index = draw.whole(int(kind == "equal largest" and n > 1), lengths[owner] - 1)
    parts[owner][index] = top
    if kind == "equal largest":
        parts[owner][index:] = top  # the first of them counts, and the lowest rank
        for later in range(owner + 1, n):
            parts[later][0] = top
    max(r for r in range(n) if parts[r].max() == top)
    torch.cat(parts).argmax().item()
    torch.stack([part.max().double() for part in parts])
    return Case(
        f"{', '.join(map(str, lengths))} numbers of {dtype}, {kind}",
        [(part,) for part in parts],
        right=(owner, index),
    )


def first(got: object) -> object:
    """Give the first of two numbers, whatever they came in."""
    got = got.tolist() if isinstance(got, torch.Tensor) and got.numel() == 2 else got
    return got[0] if isinstance(got, (list, tuple)) and len(got) == 2 else None


EXERCISE = Exercise(
    case,
    (
        Awaited(),
        OnlyCalls(("all_gather", "all_reduce", "broadcast")),
        Calls(2),
        HandedIn(16, "no more than two numbers in a call", "Two numbers have 16 bytes."),
    ),
)
