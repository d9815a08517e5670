"""6.3 Parts of any length (12 min, ●●●○○)

- all_gather needs tensors of one size on all ranks. Which size would do for everybody?
- First gather the lengths (one int64 from each rank). Pad your tensor to the longest one, gather, and cut
  each part to its own length.
- padded = x.new_zeros(longest); padded[:len(x)] = x; parts = [torch.empty_like(padded) for _ in
  range(world_size)]; dist.all_gather(parts, padded); return torch.cat([p[:n] for p, n in zip(parts,
  lengths)]).
"""

import torch

from helpers.checks.author import *
from helpers.ranks.run import Run
from helpers.trace.events import Trace


def case(draw: Draw) -> Case:
    n, dtype = draw.ranks, draw.dtype()
    kind = draw.of("any", "any", "any", "alike", "one has some", "none has any")
    lengths = draw.rng.sample(range(1 if n == 2 else 0, 10), n)
    if kind == "one has some" and n > 2:
        lengths = [7 * (r == lengths[0] % n) for r in range(n)]
    elif kind != "any" and n > 2:
        lengths = [0 if kind == "none has any" else 4] * n
    parts = [draw.laid_out(draw.tensor((length,), dtype)) for length in lengths]
    longest, right = max(lengths), torch.cat(parts)
    padded = [torch.cat([x, x.new_zeros(longest - len(x))]) for x in parts]
    shown = ", ".join(map(str, lengths))
    return Case(
        f"{shown} elements of {dtype}",
        [(x,) for x in parts],
        right=right,
        mistakes=[
            Mistake(torch.cat(padded), PADDED),
            Mistake(Each([torch.cat([p[: len(x)] for p in padded]) for x in parts]), OWN_LENGTH),
            Mistake(torch.cat([padded[-1][:length] for length in lengths]), ONE_TENSOR),
            Mistake(right[right != 0], BY_VALUE),
            Mistake(torch.cat([p[: min(lengths)] for p in padded]), SHORTEST),
            Mistake(lambda got, rank: got.dtype != dtype and got.shape == right.shape, DTYPE),
        ],
        facts={"longest": longest, "most": max(8, longest * right.element_size())},
        tolerance=0,
    )


PADDED = "The padding is still in it: cut each part to its own length."
OWN_LENGTH = "Every part is cut to the length of this rank's `x`; each has a length of its own."
ONE_TENSOR = (
    "All parts hold what the last rank has: `[t] * n` is one tensor, n times. Make one for each rank, in a "
    "comprehension."
)
BY_VALUE = "Elements are missing: cut by length, not by value; a 0 may belong to the data."
SHORTEST = "Every part is cut to the shortest length; pad to the longest."
DTYPE = "The result has the dtype of `x`: `x.new_zeros` and `torch.empty_like` make tensors of it."
SIZES = (
    "The ranks hand in tensors of different sizes. Gather the lengths first, then pad to the longest: so all "
    "hand in the same number of elements."
)


def as_they_are(trace: Trace, case: Case) -> str:
    for event in trace.calls:
        if event.call.endswith("_object"):
            return (
                f"rank {event.rank} calls {event.call}, which pickles its tensor; here tensors travel "
                "as they are, once their sizes agree."
            )
    return ""


def no_further(trace: Trace, case: Case) -> str:
    unpickled = trace.select(lambda event: not event.call.endswith("_object"))
    return HandedIn("most", "", "Pad to the longest `x`, and no further.").problem(unpickled, case)


def sizes_differ(case: Case, run: Run) -> bool:
    return any(len({e.shapes for e in m.calls}) > 1 for m in run.trace.meetings())


EXERCISE = Exercise(
    case,
    (
        Awaited(),
        Holds(as_they_are, "tensors travel unpickled", forbids=True),
        OnlyCalls(("all_gather",)),
        Count("all_gather", 2),
        Holds(no_further, "pads to the longest, and no further"),
    ),
    failed=(
        Stuck(SIZES, when=sizes_differ),
        Failed("Connection (closed|reset)|Read error|size", SIZES, died=True, when=sizes_differ),
    ),
)
