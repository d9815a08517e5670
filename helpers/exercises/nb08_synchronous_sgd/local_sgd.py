"""8.5 Local SGD (10 min, ●●○○○, further)

- Between two averages every rank trains as if it were alone. What is averaged: gradients or weights?
- There are `len(x) // batch_size` steps. After optimizer.step() of step number 1, 2, ...: if the number is a
  multiple of `every`, average the parameters.
- if (step + 1) % every == 0: for p in model.parameters(): dist.all_reduce(p.detach());
  p.detach().div_(world_size)
"""

from helpers.checks.author import *
from helpers.exercises.nb08_synchronous_sgd.in_ranks import Training, run_training
from helpers.exercises.nb08_synchronous_sgd.shared import NO_GRADIENT_ADVICE, draw_rule
from helpers.exercises.shared.gradients import (
    NO_GRAD_ADVICE,
    PARITY_MARGIN,
    SAME_CALLS_ADVICE,
    UNEQUAL_ADVICE,
    draw_samples,
    draw_weights,
)


def case(draw: Draw) -> Case:
    n, size, rule, every = draw.ranks, draw.whole(1, 3), draw_rule(draw), draw.of(1, 2, 2, 3)
    steps = draw.of(every, 2 * every, 2 * every + 1, every + 1, every - 1)
    rest, pixels, classes = draw.whole(0, size - 1), draw.whole(1, 3), draw.whole(2, 3)
    start, calls = draw_weights(draw, pixels, classes), draw.of(1, 1, 2)
    count = steps * size + rest
    own = [draw_samples(draw, count, pixels, classes) for _ in range(n)]
    averages = calls * (steps // every)  # a second call counts its steps from 1 again
    return Case(
        f"{plural(count, 'sample')} each, {plural(steps, 'step')} of {size}, averaged every {every}"
        + ", called twice" * (calls - 1),
        [(Training(start, rule, x, y, size, every, steps, calls, True),) for x, y in own],
        right=Reference(margin=PARITY_MARGIN, ignore=("samples", "losses")),
        facts={
            "bytes": averages * sum(w.nbytes for w in start),
            "calls": averages * len(start),
            "every": every,
            "twice": 2 * every,
            "samples": count,
            "steps": steps,
            "size": size,
        },
    )


EXERCISE = Exercise(
    case,
    (
        OnlyCalls(("all_reduce",)),
        Calls(
            "all_reduce",
            text="only the weights are sent, after every `every` steps",
            why="Each average sends every parameter once, and nothing else.",
        ),
        WaitsForAll(),
    ),
    failed=(
        NO_GRAD_ADVICE,
        NO_GRADIENT_ADVICE,
        HangAdvice(SAME_CALLS_ADVICE),
        CrashAdvice("", UNEQUAL_ADVICE, died=True),
    ),
    kind=Kind.MODULE,
    driver=run_training,
    reported=("steps", "samples", "buffer"),
)
