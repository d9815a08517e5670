"""6.3 Parts of any length (12 min, ●●●○○, further)

- all_gather needs tensors of the same size on all ranks. Which size would be enough for all of them?
- First gather the lengths (one int64 from each rank). Pad your tensor to the largest length, gather the
  padded tensors, and cut each part to its real length.
- padded = x.new_zeros(longest); padded[:len(x)] = x; parts = [torch.empty_like(padded) for _ in
  range(world_size)]; dist.all_gather(parts, padded); return torch.cat([p[:n] for p, n in zip(parts,
  lengths)]).
"""

import torch

from helpers.checks.author import *


def case(draw: Draw) -> Case:
    n, dtype = draw.ranks, draw.dtype()
    kind = draw.of("any", "any", "any", "alike", "one has some", "none has any")
    lengths = draw.rng.sample(range(1 if n == 2 else 0, 10), n)
    if kind == "one has some" and n > 2:
        lengths = [7 * (r == lengths[0] % n) for r in range(n)]
    elif kind != "any" and n > 2:
        lengths = [0 if kind == "none has any" else 4] * n
    parts = [draw.laid_out(draw.tensor((length,), dtype)) for length in lengths]
    longest = max(lengths)
    shown = ", ".join(map(str, lengths))
    return Case(
        f"{shown} elements of {dtype}",
        [(x,) for x in parts],
        right=torch.cat(parts),
        facts={"most": max(8, longest * parts[0].element_size())},
        tolerance=0,
    )


def find_pickling_call(trace: Trace, case: Case) -> str:
    for event in trace.calls:
        if event.call.endswith("_object"):
            return (
                f"rank {event.rank} calls {event.call}, which pickles its tensor; make the sizes equal "
                "instead, and send the tensors directly."
            )
    return ""


def find_excess_padding(trace: Trace, case: Case) -> str:
    unpickled = trace.select(lambda event: not event.call.endswith("_object"))
    return Calls(bytes_per_call="most", why="Pad to the longest `x`, and no further.").problem(
        unpickled, case
    )


EXERCISE = Exercise(
    case,
    (
        WaitsForAll(),
        Predicate(find_pickling_call, "tensors are sent unpickled", forbids=True),
        OnlyCalls(("all_gather",)),
        Calls("all_gather", 2),
        Predicate(find_excess_padding, "pads to the longest, and no further"),
    ),
)
