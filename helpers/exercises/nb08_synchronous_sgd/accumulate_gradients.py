"""8.4 Accumulate, then synchronize once (8 min, ●●○○○)

- `backward()` adds to `p.grad`. So what should happen once before the loop, and what once after it?
- The sum of k mean gradients is k times too large, so divide each loss by the number of microbatches before
  calling backward.
- model.zero_grad(); for x, y in microbatches: loss = cross_entropy(model(x), y) / len(microbatches);
  loss.backward(). After the loop: average_gradients(model).
"""

from helpers.checks.author import *
from helpers.exercises.nb08_synchronous_sgd.in_ranks import run_accumulation
from helpers.exercises.nb08_synchronous_sgd.shared import ACCUMULATION_ADVICE
from helpers.exercises.shared.gradients import (
    NO_GRAD_ADVICE,
    PARITY_MARGIN,
    SAME_CALLS_ADVICE,
    UNEQUAL_ADVICE,
    draw_samples,
    draw_weights,
)

STEP_COUNT = 2


def case(draw: Draw) -> Case:
    n, k, size = draw.ranks, draw.of(1, 2, 3, 4), draw.whole(1, 3)
    pixels, classes, stale = draw.whole(1, 3), draw.whole(2, 3), draw.of(None, None, 3.0, -7.5)
    weights = draw_weights(draw, pixels, classes)
    x, y = draw_samples(draw, STEP_COUNT * n * k * size, pixels, classes)
    parts = list(zip(x.split(size), y.split(size), strict=True))
    nbytes = sum(8 * g.numel() for g in weights)
    return Case(
        f"{k} microbatch{'es' * (k > 1)} of {plural(size, 'sample')}"
        + ", gradients of an earlier step" * (stale is not None),
        [
            (weights, [parts[(s * n + r) * k :][:k] for s in range(STEP_COUNT)], stale)
            for r in range(n)
        ],
        right=Reference(None, ACCUMULATION_ADVICE, PARITY_MARGIN),
        facts={
            "k": f"{k} microbatch{'es' * (k > 1)}",
            "bytes": STEP_COUNT * (nbytes + 8),
            "calls": STEP_COUNT * (len(weights) + 1),
        },
    )


EXERCISE = Exercise(
    case,
    (
        OnlyCalls(("all_reduce",)),
        Calls(
            "all_reduce",
            text="the gradients are sent once a step",
            why="Add up the gradients of all microbatches first, then synchronize once.",
        ),
        WaitsForAll(),
    ),
    failed=(
        NO_GRAD_ADVICE,
        HangAdvice(SAME_CALLS_ADVICE),
        CrashAdvice("", UNEQUAL_ADVICE, applies_if_killed=True),
    ),
    kind=Kind.MODULE,
    driver=run_accumulation,
    reported=("weights", "samples", "held", "mode"),
)
