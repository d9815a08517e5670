"""8.5 Local SGD (10 min, ●●○○○, further)

- Between two meetings every rank trains as if it were alone. What is averaged when they meet: gradients or
  weights?
- There are `len(x) // batch_size` steps. After optimizer.step() of step number 1, 2, ...: if the number is a
  multiple of `every`, average the parameters.
- if (step + 1) % every == 0: for p in model.parameters(): dist.all_reduce(p.data); p.data /= world_size
"""

from helpers.checks.author import *
from helpers.exercises.nb08_synchronous_sgd.in_ranks import train
from helpers.exercises.nb08_synchronous_sgd.shared import (
    NO_GRADIENT_YET,
    at,
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
from helpers.views.plain import plural

LAST = "The ranks meet only after steps {every}, {twice}, ...: steps left over at the end stay a rank's own."
SUM = "This is the sum of the ranks' weights: divide it by the world size."
UNCLEARED = "The gradients of the steps before are added to these: clear them before each step."
LEFT_OVER = (
    "{samples} samples make len(x) // batch_size = {steps} steps of {size}: what is left over makes "
    "no step."
)
ADVICE = {"steps": LEFT_OVER}


def case(draw: Draw) -> Case:
    n, size, rule, every = draw.ranks, draw.whole(1, 3), draw_rule(draw), draw.of(1, 2, 2, 3)
    steps = draw.of(every, 2 * every, 2 * every + 1, every + 1, every - 1)
    rest, pixels, classes = draw.whole(0, size - 1), draw.whole(1, 3), draw.whole(2, 3)
    start = draw_weights(draw, pixels, classes)
    count = steps * size + rest
    own = [draw_samples(draw, count, pixels, classes) for _ in range(n)]
    batches = [
        list(parts) for parts in zip(*(batches_of(x, y, size, steps) for x, y in own), strict=True)
    ]
    starts, meet = [start] * n, average_weights()

    def meets(step: int) -> bool:
        return step % every == 0

    parts = trained(starts, rule, batches, after=at(meets, meet))
    room = PARITY * max(largest(*(value for one in parts for value in one.values())), 1.0)
    judge = ByName(
        [{"steps": "", **one} for one in parts], room, lambda name, got: ADVICE.get(name, "")
    )

    def gives(words: str, **ways: object) -> Mistake:
        return judge.mistake(words, lambda: trained(starts, rule, batches, **ways))  # type: ignore[arg-type]

    return Case(
        f"{plural(count, 'sample')} each, {plural(steps, 'step')} of {size}, averaged every {every}",
        [(start, rule, x, y, size, every, steps) for x, y in own],
        right=judge,
        facts={
            "bytes": steps // every * sum(w.nbytes for w in start),
            "calls": steps // every * len(start),
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
        Travels(
            "all_reduce",
            "the weights travel every so many steps",
            why="After every so many steps the ranks average their weights, and nothing else travels.",
        ),
        Awaited(),
    ),
    failed=(GUARDED, NO_GRADIENT_YET, Stuck(SAME_CALLS), Failed("", UNEQUAL, died=True)),
    kind=Kind.MODULE,
    programme=train,
    reported=("steps", "samples"),
)
