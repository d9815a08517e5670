"""8.2 Train like one process (15 min, ●●●○○)

- Two things need to be the same on all ranks: the weights at the start, and the gradient in each step. One
  thing needs to differ: the samples.
- First, broadcast every parameter from rank 0. In each step, select the batch from x and y and take every
  world_size-th sample of it, starting at your rank. Then call zero_grad, loss, backward,
  average_gradients(model), optimizer.step().
- own = slice(step * batch_size + rank, (step + 1) * batch_size, world_size). For the value to return: mean =
  loss.detach(); dist.all_reduce(mean); losses.append(mean.item() / world_size).
"""

from helpers.checks.author import *
from helpers.exercises.nb08_synchronous_sgd.in_ranks import Training, run_training
from helpers.exercises.nb08_synchronous_sgd.shared import draw_rule
from helpers.exercises.shared.gradients import (
    NO_GRAD_ADVICE,
    PARITY_MARGIN,
    UNEQUAL_ADVICE,
    draw_samples,
    draw_weights,
)

SAMPLES_ADVICE = (
    "Each sample should go through the model once: a rank takes only its share of each batch, and returns "
    "the same loss that it called backward on."
)


def case(draw: Draw) -> Case:
    n, each, steps, rule = draw.ranks, draw.whole(1, 3), draw.whole(2, 4), draw_rule(draw)
    size, pixels, classes = n * each, draw.whole(1, 3), draw.whole(2, 3)
    starts = [draw_weights(draw, pixels, classes) for _ in range(n)]
    x, y = draw_samples(draw, steps * size + draw.of(0, 5), pixels, classes)
    nbytes = sum(w.nbytes for w in starts[0])
    return Case(
        f"{plural(steps, 'step')} of {plural(size, 'sample')}, momentum {rule[1]:g}",
        [(Training(start, rule, x, y, size, steps, steps),) for start in starts],
        right=Reference(None, {"samples": SAMPLES_ADVICE}, PARITY_MARGIN),
        facts={
            "bytes": steps * (nbytes + 16) + 8,
            "calls": steps * (len(starts[0]) + 2) + 1,
            "weights": nbytes,
            "parameters": len(starts[0]),
        },
    )


EXERCISE = Exercise(
    case,
    (
        OnlyCalls(("all_reduce", "broadcast")),
        Calls(
            "broadcast",
            most="parameters",
            total_bytes="weights",
            text="the weights are broadcast once",
            why="Broadcast them only at the start.",
        ),
        Calls("all_reduce", text="each gradient and one loss are sent in each step"),
        WaitsForAll(),
    ),
    failed=(NO_GRAD_ADVICE, CrashAdvice("", UNEQUAL_ADVICE, applies_if_killed=True)),
    kind=Kind.MODULE,
    driver=run_training,
    reported=("steps", "samples"),
)
