"""8.5 Local SGD (10 min, ●●○○○, further)

- Between two averages every rank trains as if it were alone. What is averaged: gradients or weights?
- There are `len(x) // batch_size` steps. After optimizer.step() of step number 1, 2, ...: if the number is a
  multiple of `every`, average the parameters.
- if (step + 1) % every == 0: for p in model.parameters(): dist.all_reduce(p.data); p.data /= world_size
"""

from helpers.checks.author import *
from helpers.exercises.nb08_synchronous_sgd.in_ranks import Training, train
from helpers.exercises.nb08_synchronous_sgd.shared import (
    NO_GRADIENT_YET,
    average_weights,
    draw_rule,
    trained,
)
from helpers.exercises.shared.gradients import (
    GUARDED,
    PARITY,
    SAME_CALLS,
    UNEQUAL,
    batches_of,
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
    batches = [
        list(parts) for parts in zip(*(batches_of(x, y, size, steps) for x, y in own), strict=True)
    ]
    # a second call counts its steps from 1 again
    averages = {call * steps + k for call in range(calls) for k in range(every, steps + 1, every)}
    parts = trained([start] * n, rule, batches * calls, after=average_weights(averages))
    room = PARITY * max(largest(*parts), 1.0)
    return Case(
        f"{plural(count, 'sample')} each, {plural(steps, 'step')} of {size}, averaged every {every}"
        + ", called twice" * (calls - 1),
        [(Training(start, rule, x, y, size, every, steps, calls, True),) for x, y in own],
        right=ByName([{"steps": "", **one, "buffer": ""} for one in parts], room),
        facts={
            "bytes": len(averages) * sum(w.nbytes for w in start),
            "calls": len(averages) * len(start),
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
        Awaited(),
    ),
    failed=(GUARDED, NO_GRADIENT_YET, Stuck(SAME_CALLS), Failed("", UNEQUAL, died=True)),
    kind=Kind.MODULE,
    driver=train,
    reported=("steps", "samples", "buffer"),
)
