"""8.4 Accumulate, then synchronise once (8 min, ●●○○○)

- `backward()` adds to `p.grad`. So what must happen once before the loop, and what once after it?
- The sum of k mean gradients is k times too large: divide each loss by the number of microbatches before
  backward.
- model.zero_grad(); for x, y in microbatches: loss = cross_entropy(model(x), y) / len(microbatches);
  loss.backward(). After the loop: average_gradients(model).
"""

from typing import Any

import torch

from helpers.checks.author import *
from helpers.exercises.nb08_synchronous_sgd.in_ranks import accumulate
from helpers.exercises.nb08_synchronous_sgd.shared import STEPS
from helpers.exercises.shared.gradients import (
    GUARDED,
    PARITY,
    SAME_CALLS,
    UNEQUAL,
    Grads,
    draw_samples,
    draw_weights,
    gradients,
)
from helpers.views.plain import plural

ONE = "One microbatch at a time: forward and backward, so that its memory is free again."
ADVICE = {"weights": STEPS, "samples": ONE, "held": ONE}


def case(draw: Draw) -> Case:
    n, k, size, steps = draw.ranks, draw.of(1, 2, 3, 4), draw.whole(1, 3), 2
    pixels, classes, stale = draw.whole(1, 3), draw.whole(2, 3), draw.of(None, None, 3.0, -7.5)
    weights = draw_weights(draw, pixels, classes)
    x, y = draw_samples(draw, steps * n * k * size, pixels, classes)
    parts = list(zip(x.split(size), y.split(size), strict=True))
    names = [f"{layer}.{kind}" for layer in (1, 3) for kind in ("weight", "bias")]
    # of each step and rank, the gradients of its microbatches
    own = [
        [[gradients(weights, *part) for part in parts[(s * n + r) * k :][:k]] for r in range(n)]
        for s in range(steps)
    ]
    sums = [added([added(mine) for mine in step]) for step in own]

    def named(step: int, grads: Grads) -> dict[str, Any]:
        return {f"step {step + 1}: {name}": g for name, g in zip(names, grads, strict=True)}

    def steps_of(*each: Grads) -> dict[str, Any]:
        return {
            name: g for step, grads in enumerate(each) for name, g in named(step, grads).items()
        }

    def factor(by: float, words: str) -> list[Mistake]:
        gives = [steps_of(*(times(grads, by / n / k) for grads in sums))] * n
        return [judge.mistake(words, gives)] if by != 1 else []

    def alone(by: float, chosen: slice = slice(None)) -> list[Parts]:
        return [steps_of(*(times(added(step[r][chosen]), by) for step in own)) for r in range(n)]

    def only(which: slice, by: float) -> list[Parts]:
        return [
            steps_of(*(times(added([added(mine[which]) for mine in step]), by / n) for step in own))
        ] * n

    right = steps_of(*(times(grads, 1 / n / k) for grads in sums))
    judge = ByName(
        [{"weights": "", **right, "samples": "", "held": ""}] * n,
        PARITY
        * max(largest(*(g for step in own for mine in step for one in mine for g in one)), 1e-3),
        lambda name, got: ADVICE.get(name, ""),
    )
    nbytes = sum(8 * g.numel() for g in weights)
    return Case(
        f"{k} microbatch{'es' * (k > 1)} of {plural(size, 'sample')}"
        + ", gradients of an earlier step" * (stale is not None),
        [(weights, [parts[(s * n + r) * k :][:k] for s in range(steps)], stale) for r in range(n)],
        right=judge,
        facts={"k": k, "bytes": steps * (nbytes + 8), "calls": steps * (len(weights) + 1)},
    )


UNCLEARED = (
    "The gradients of an earlier step are added to these: clear them at the start of each step, once, before "
    "the loop."
)


def added(each: list[Grads]) -> Grads:
    """Add up gradients."""
    return [torch.stack(list(one)).sum(0) for one in zip(*each, strict=True)]


def times(grads: Grads, factor: float) -> Grads:
    """Multiply gradients."""
    return [factor * g for g in grads]


EXERCISE = Exercise(
    case,
    (
        OnlyCalls(("all_reduce",)),
        Travels(
            "all_reduce",
            "the gradients travel once a step",
            why="Add up the gradients of all microbatches first, then synchronise once.",
        ),
        Awaited(),
    ),
    failed=(GUARDED, Stuck(SAME_CALLS), Failed("", UNEQUAL, died=True)),
    kind=Kind.MODULE,
    programme=accumulate,
    reported=("weights", "samples", "held"),
)
