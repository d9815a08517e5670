"""4.5 Global argmax (15 min, ●●●○○, further)

- `all_reduce` with MAX gives you the largest value, but not the rank that has it. Which collective keeps the
  values of the ranks apart?
- Call `all_gather` with each rank's own maximum, so that every rank can find the owner. Only the owner knows
  the index, so you need one more collective to send it to the others.
- tops = [torch.empty_like(x.max()) for _ in range(world_size)]; dist.all_gather(tops, x.max()); owner =
  int(torch.stack(tops).argmax()); index = x.argmax(); dist.broadcast(index, src=owner); return owner,
  index.item().
"""

import torch

from helpers.checks.author import *

NEAR_2_60 = 1 << 60
"""A number near which two neighboring integers are the same float64."""


def case(draw: Draw) -> Case:
    n, kind = (
        draw.ranks,
        draw.of("different", "all negative", "equal largest", "very large", "many numbers"),
    )
    dtype = (
        torch.int64
        if kind == "very large"
        else draw.dtype(torch.float32, torch.float64, torch.int64, torch.float16)
    )
    lengths, owner = [draw.whole(1, 6) for _ in range(n)], draw.rank()
    if kind == "equal largest" and n > 1:  # a later rank also has the maximum, at a lower index
        owner = min(owner, n - 2)
        lengths[owner] += 1
    if kind == "many numbers":
        lengths[owner], dtype = draw.whole(2100, 2500), draw.of(torch.float16, torch.int64)
    numbers = [torch.tensor(draw.rng.choices(range(2, 90), k=k)) for k in lengths]
    # Tenths, because an answer that compares whole numbers would then treat different maxima as equal.
    parts = [part / 10 if dtype.is_floating_point else part for part in numbers]
    parts = [part.to(dtype) for part in parts]
    if kind == "all negative":
        parts = [part - 100 for part in parts]
    if kind == "very large":
        parts = [part % 3 + NEAR_2_60 for part in parts]
    step = 1 if kind == "very large" or not dtype.is_floating_point else 0.125
    top = torch.tensor(max(part.max().item() for part in parts) + step, dtype=dtype).item()
    index = draw.whole(int(kind == "equal largest" and n > 1), lengths[owner] - 1)
    if kind == "many numbers":
        index = 2049 + 2 * draw.whole(0, 20)  # float16 cannot hold odd numbers beyond 2048
    parts[owner][index] = top
    if kind == "equal largest":
        # among equal maxima, the first one on the lowest rank counts
        parts[owner][index:] = top
        for later in range(owner + 1, n):
            parts[later][0] = top
    return Case(
        f"{', '.join(map(str, lengths))} numbers of {dtype}, {kind}",
        [(part,) for part in parts],
        right=(owner, index),
    )


EXERCISE = Exercise(
    case,
    (
        WaitsForAll(),
        OnlyCalls(("all_gather", "all_reduce", "broadcast")),
        Calls(most=2),
        Calls(
            bytes_per_call=16,
            text="passes at most two numbers per call",
            why="Two numbers take 16 bytes.",
        ),
    ),
)
