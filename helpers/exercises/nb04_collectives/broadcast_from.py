"""4.1 Broadcast (5 min, ●○○○○)

- Which ranks must call `dist.broadcast`? And what should a rank without data pass to the call?
- All ranks make the same call with the same `src`. A receiving rank needs a tensor of the right shape and
  dtype: `torch.empty(shape, dtype=dtype)`.
- If `rank != src`, make the empty tensor and call it `x` as well. Then all ranks can run the same line,
  `dist.broadcast(x, src=src)`, and return `x`, which was filled in place.
"""

from helpers.checks.author import *

ONE_CALL_ADVICE = (
    "One call sends a whole tensor, while the functions for objects pickle it and make two calls."
)


def case(draw: Draw) -> Case:
    x, src = draw.tensor(), draw.rank()
    return Case(
        f"{tuple(x.shape)} of {x.dtype}, from rank {src}",
        [(x if rank == src else None, tuple(x.shape), x.dtype, src) for rank in range(draw.ranks)],
        right=x,
        facts={"src": src},
        tolerance=0,
    )


EXERCISE = Exercise(
    case,
    (
        WaitsForAll(),
        OnlyCalls(("broadcast",)),
        Root("src"),
        Calls("broadcast", 1, why=ONE_CALL_ADVICE),
    ),
)
