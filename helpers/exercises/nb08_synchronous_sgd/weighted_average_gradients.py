"""8.3 Unequal batches (12 min, ●●●○○)

- A rank's gradient is a mean over its own samples. What should you multiply it by to get back the sum over
  these samples?
- All ranks need the total number of samples, so add up `torch.tensor(float(samples))` by calling all_reduce.
  A rank without samples contributes zeros.
- total = torch.tensor(float(samples)); dist.all_reduce(total). For each p: g = torch.zeros_like(p) if p.grad
  is None else p.grad; g *= samples / total; dist.all_reduce(g); p.grad = g.
"""

import torch

from helpers.checks.author import *
from helpers.exercises.nb08_synchronous_sgd.in_ranks import run_with_gradients
from helpers.exercises.nb08_synchronous_sgd.shared import STEPS_ADVICE
from helpers.exercises.shared.gradients import (
    NO_GRAD_ADVICE,
    PARITY_MARGIN,
    SAME_CALLS_ADVICE,
    UNEQUAL_ADVICE,
)

PARAMETER_NAMES = ("weight", "bias", "table", "scale")


def case(draw: Draw) -> Case:
    n, dtype = draw.ranks, draw.dtype(torch.float64, torch.float32)
    kind, counts = draw.of("different", "one has none", "large", "alike"), [0]
    while not any(counts):
        # some exceed the largest number up to which float16 and bfloat16 count exactly
        counts = [draw.whole(1, 99_999 if kind == "large" else 9) for _ in range(n)]
        counts = [counts[0]] * n if kind == "alike" else counts
        counts[draw.rank()] *= kind != "one has none" or n == 1
    names, values, grads = PARAMETER_NAMES[: draw.whole(1, 4)], {}, {}
    for name in names:
        shape = draw.shape((0, 1, 2), 1)
        values[name], grads[name] = draw.tensor(shape, dtype), draw.tensors(shape, dtype)
    own = [
        {name: grads[name][rank] if counts[rank] else None for name in names} for rank in range(n)
    ]
    room = PARITY_MARGIN if dtype == torch.float64 else 1.0
    scale = {name: room * largest(*grads[name]) for name in names}
    return Case(
        f"{', '.join(map(str, counts))} samples, {plural(len(names), 'parameter')} of {dtype}",
        [
            ([(k, values[k], one[k], True) for k in names], False, count)
            for one, count in zip(own, counts, strict=True)
        ],
        right=Reference(scale, {"weights": STEPS_ADVICE}),
        facts={
            "bytes": sum(value.nbytes for value in values.values()) + 8,
            "calls": len(names) + 1,
            "counts": ", ".join(map(str, counts)),
            "total": sum(counts),
            "empty": counts.index(0) if 0 in counts else None,
        },
        telling=len(set(counts)) > 1 and max(counts) < 10,
    )


EXERCISE = Exercise(
    case,
    (
        OnlyCalls(("all_reduce",)),
        Calls(
            "all_reduce",
            text="each gradient and one number of samples are sent once",
            why="The total number of samples is the same for all gradients, so add it up only once.",
        ),
        WaitsForAll(),
    ),
    failed=(
        NO_GRAD_ADVICE,
        HangAdvice(SAME_CALLS_ADVICE),
        CrashAdvice("", UNEQUAL_ADVICE, applies_if_killed=True),
    ),
    kind=Kind.MODULE,
    driver=run_with_gradients,
    reported=("weights",),
)
