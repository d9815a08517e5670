"""8.5 A mean over tokens (12 min, ●●●○○, further)

- A mean is a sum divided by a count. Which of the two can you add up over microbatches and ranks?
- `cross_entropy(..., reduction="sum")` leaves out the ignored tokens, and its backward adds sums to `p.grad`.
  You can count the other tokens with `(y != -100).sum()`.
- In the loop: cross_entropy(model(x), y, reduction="sum").backward(); tokens += (y != -100).sum(). After the
  loop: dist.all_reduce(tokens); for each p: dist.all_reduce(p.grad); p.grad /= tokens.
"""

import torch

from helpers.checks.author import *
from helpers.exercises.nb08_synchronous_sgd.in_ranks import IGNORED, run_accumulation
from helpers.exercises.nb08_synchronous_sgd.shared import ACCUMULATION_ADVICE, NO_GRADIENT_ADVICE
from helpers.exercises.shared.gradients import (
    NO_GRAD_ADVICE,
    PARITY_MARGIN,
    SAME_CALLS_ADVICE,
    UNEQUAL_ADVICE,
    draw_samples,
    draw_weights,
)


def case(draw: Draw) -> Case:
    n, pixels, classes = draw.ranks, draw.whole(1, 3), draw.whole(2, 3)
    kind, stale = draw.of("", "", "microbatch", "rank"), draw.of(None, None, 3.0, -7.5)
    without = draw.rank() if kind == "rank" and n > 1 else None
    weights, microbatches, counts = draw_weights(draw, pixels, classes), [], []
    for rank in range(n):
        sizes = [draw.whole(1, 5) for _ in range(draw.whole(1, 3))]
        x, y = draw_samples(draw, sum(sizes), pixels, classes)
        own = list(zip(x.flatten(1).split(sizes), y.split(sizes), strict=True))
        kept = [
            0 if kind == "microbatch" and k == 1 else draw.whole(1, s) for k, s in enumerate(sizes)
        ]
        counts.append([0] * len(sizes) if rank == without else kept)
        for (_, labels), count in zip(own, counts[-1], strict=True):
            order = torch.randperm(len(labels), generator=draw.generator())
            labels[order[count:]] = IGNORED
        microbatches.append(own)
    totals, nbytes = [sum(own) for own in counts], sum(w.nbytes for w in weights)
    return Case(
        f"{' | '.join(' + '.join(map(str, own)) for own in counts)} tokens"
        + ", old gradients" * (stale is not None),
        [(weights, [own], stale) for own in microbatches],
        right=Reference(None, ACCUMULATION_ADVICE, PARITY_MARGIN),
        facts={
            "bytes": nbytes + 8,
            "calls": len(weights) + 1,
            "counts": ", ".join(map(str, totals)),
            "total": sum(totals),
            "empty": without,
        },
        telling=len(set(totals)) > 1 and len({count for own in counts for count in own}) > 1,
    )


EXERCISE = Exercise(
    case,
    (
        OnlyCalls(("all_reduce",)),
        Calls(
            "all_reduce",
            text="each gradient and one number of tokens are sent once",
            why="Add up the gradients and the tokens of all microbatches first, then synchronize once.",
        ),
        WaitsForAll(),
    ),
    failed=(
        NO_GRAD_ADVICE,
        NO_GRADIENT_ADVICE,
        HangAdvice(SAME_CALLS_ADVICE),
        CrashAdvice("", UNEQUAL_ADVICE, applies_if_killed=True),
    ),
    kind=Kind.MODULE,
    driver=run_accumulation,
    reported=("weights", "samples", "held", "mode"),
)
