"""8.2 Train as one (15 min, ●●●○○)

- Two things must be the same on all ranks: the weights at the start, and the gradient in each step. One
  thing must differ: the samples.
- Broadcast every parameter from rank 0 first. In each step: cut the batch out of x and y, take every
  world_size-th sample of it from your rank on, then zero_grad, loss, backward, average_gradients(model),
  optimizer.step().
- own = slice(step * batch_size + rank, (step + 1) * batch_size, world_size). For the value to return: mean =
  loss.detach(); dist.all_reduce(mean); losses.append(mean.item() / world_size).
"""

from helpers.checks.author import *
from helpers.exercises.nb08_synchronous_sgd.in_ranks import train
from helpers.exercises.nb08_synchronous_sgd.shared import (
    NO_GRADIENT_YET,
    average_grads,
    average_weights,
    draw_rule,
    forget,
    loss,
    trained,
)
from helpers.exercises.shared.gradients import (
    GUARDED,
    PARITY,
    SAME_CALLS,
    UNEQUAL,
    Samples,
    batches_of,
    draw_samples,
    draw_weights,
)
from helpers.views.plain import plural

STARTS = "The ranks begin with different weights: broadcast rank 0's before the first step."
APART = (
    "Each rank steps with its own gradient: average the gradients between backward and optimizer.step(), on "
    "every rank."
)
UNCLEARED = "The gradients of the steps before are added to these: clear them in each step, before backward."
TOO_LONG = "Each step is {n} times too long: divide the sum of the gradients by the world size."
TWICE = "Each step is {n} times too short: the gradients are divided by the world size twice."
SHARE = (
    "Cut this rank's part out of each batch first: the others compute the rest. And keep the loss that you "
    "called backward on: no second forward is needed to return it."
)
SAME_PART = (
    "All ranks learn from the first part of the batch: every sample belongs to exactly one rank."
)
WHOLE = (
    "Return, on every rank, the mean over the whole batch: the mean of the ranks' losses, each taken before "
    "the step."
)
NOTHING = "It returns no losses: a list of floats is wanted, one for each step, on every rank."
STILL = "The weights do not move: is the gradient still there when optimizer.step() is called?"
ADVICE = {"samples": SHARE}


def case(draw: Draw) -> Case:
    n, each, steps, rule = draw.ranks, draw.whole(1, 3), draw.whole(2, 4), draw_rule(draw)
    size, pixels, classes = n * each, draw.whole(1, 3), draw.whole(2, 3)
    starts = [draw_weights(draw, pixels, classes) for _ in range(n)]
    x, y = draw_samples(draw, steps * size + draw.of(0, 5), pixels, classes)
    whole = batches_of(x, y, size, steps)
    dealt = [[(a[r::n], b[r::n]) for r in range(n)] for a, b in whole]
    blocks = [list(zip(a.chunk(n), b.chunk(n), strict=True)) for a, b in whole]
    first: list[list[Samples]] = [[parts[0]] * n for parts in blocks]
    (one,) = trained(starts[:1], rule, [[batch] for batch in whole])
    before = [one[f"weights before step {k}"] for k in range(1, steps + 1)]

    def losses(batches: list[Samples]) -> list[float]:
        return [loss(w, starts[0], *batch) for w, batch in zip(before, batches, strict=True)]

    right = {"steps": "", **one, "samples": steps * each, "losses": losses(whole)}
    scale = {name: PARITY * max(largest(value), 1.0) for name, value in one.items()}
    judge = ByName([right] * n, scale, lambda name, got: ADVICE.get(name, ""))
    alike, mean = [starts[0]] * n, average_grads()

    def own_losses(batches: list[list[Samples]]) -> list[Parts]:
        return [{"losses": losses([parts[r] for parts in batches])} for r in range(n)]

    return Case(
        f"{plural(steps, 'step')} of {plural(size, 'sample')}, momentum {rule[1]:g}",
        [(start, rule, x, y, size, steps, steps) for start in starts],
        right=judge,
        mistakes=[
            *(
                judge.mistake(STARTS, lambda b=b: trained(starts, rule, b, mean))  # type: ignore[misc]
                for b in (dealt, blocks)
            ),
            *(
                judge.mistake(APART, lambda b=b, s=s: trained(s, rule, b))  # type: ignore[misc]
                for b in (dealt, blocks)
                for s in (alike, starts)
            ),
            *(
                judge.mistake(APART, lambda b=b: trained(alike, rule, b, after=average_weights()))  # type: ignore[misc]
                for b in (dealt, blocks)
            ),
            judge.mistake(UNCLEARED, lambda: trained(alike, rule, dealt, mean, clear=False)),
            judge.mistake(TOO_LONG, lambda: trained(alike, rule, dealt, average_grads(1))),
            judge.mistake(TWICE, lambda: trained(alike, rule, dealt, average_grads(n * n))),
            judge.mistake(SAME_PART, lambda: trained(alike, rule, first, mean)),
            judge.mistake(STILL, lambda: trained(alike, rule, dealt, forget)),
            judge.mistake(STILL, [{"weights after step 1": one["weights before step 1"]}] * n),
            judge.without("losses", NOTHING),
            *(judge.mistake(WHOLE, lambda b=b: own_losses(b)) for b in (dealt, blocks)),  # type: ignore[misc]
            judge.mistake(
                "These are the sums over the ranks: divide each loss by the world size.",
                [{"losses": [n * value for value in right["losses"]]}] * n,
            ),
            judge.mistake(
                "These are the losses after each step: the ones before it are wanted.",
                lambda: (
                    [
                        {
                            "losses": [
                                loss(one[f"weights after step {k}"], starts[0], *b)
                                for k, b in enumerate(whole, 1)
                            ]
                        }
                    ]
                    * n
                ),
            ),
        ],
        facts={
            "bytes": steps * (before[0].nbytes + 16) + 8,
            "calls": steps * (len(starts[0]) + 2) + 1,
            "weights": before[0].nbytes,
            "parameters": len(starts[0]),
        },
    )


EXERCISE = Exercise(
    case,
    (
        OnlyCalls(("all_reduce", "broadcast")),
        Travels(
            "broadcast",
            "the weights are broadcast once",
            "weights",
            "parameters",
            "Once, at the start.",
        ),
        Travels("all_reduce", "one gradient and one loss travel in each step"),
        Awaited(),
    ),
    failed=(GUARDED, NO_GRADIENT_YET, Stuck(SAME_CALLS), Failed("", UNEQUAL, died=True)),
    kind=Kind.MODULE,
    programme=train,
    reported=("steps", "samples"),
)
