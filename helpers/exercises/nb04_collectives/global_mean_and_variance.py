"""4.4 Global mean and variance (10 min, ●●●○○)

- The mean of the means is wrong if the lengths differ. Which numbers of each rank can be added up?
- Three sums are enough: the count of the numbers, their sum, and the sum of their squares. Put them into one
  tensor of float64.
- x = x.double(); t = torch.stack([torch.tensor(len(x)).double(), x.sum(), (x * x).sum()]);
  dist.all_reduce(t); n, s, q = t.tolist(); return s / n, q / n - (s / n) ** 2.
"""

import torch

from helpers.checks.author import *


def case(draw: Draw) -> Case:
    dtype = draw.dtype(torch.float32, torch.float64, torch.int64)
    around, how = (
        draw.of("near 0", "near 10,000"),
        draw.of("alike", "different", "one has none", "different"),
    )
    n = draw.ranks
    lengths = [draw.whole(1, 6)] * n if how == "alike" else [draw.whole(1, 6) for _ in range(n)]
    lengths[draw.rank()] = draw.whole(2, 7)
    if how == "one has none" and n > 1:
        lengths[lengths.index(min(lengths))] = 0
    parts = [(torch.randn(k, generator=draw.generator()) * 9).to(dtype) for k in lengths]
    parts = [part + (10_000 if around == "near 10,000" else 3) for part in parts]
    whole = torch.cat(parts).double()
    return Case(
        f"{', '.join(map(str, lengths))} numbers of {dtype}, {around}",
        [(part,) for part in parts],
        right=(whole.mean().item(), whole.var(correction=0).item()),
        facts={"bytes": 24},
        tolerance=1e-5,
    )


EXERCISE = Exercise(
    case,
    (
        WaitsForAll(),
        OnlyCalls(("all_reduce",)),
        Calls("all_reduce", 1, why="Put all values to be summed into one tensor."),
        Calls(
            bytes_per_call="bytes",
            text="passes at most three numbers",
            why="Three float64 numbers take 24 bytes.",
        ),
    ),
)
