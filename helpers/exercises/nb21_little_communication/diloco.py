"""21.5 DiLoCo (25 min, ●●●●○, further)

- You need two optimizers: `inner` runs separately on each rank, and an outer optimizer, which you create
  yourself, runs at each synchronization. Which weights does the outer optimizer change, and what is its
  gradient?
- Keep a copy of the weights of the last synchronization. At the next synchronization, each rank's "gradient"
  is this copy minus its current weights, and you need to average it over the ranks. The outer step starts
  from the copy, and its result becomes the copy for the next synchronization.
- kept = [p.detach().clone() ...]; outer = torch.optim.SGD(kept, lr=outer_lr, momentum=momentum,
  nesterov=True). At a synchronization: k.grad = k - p.detach(); dist.all_reduce(k.grad,
  op=dist.ReduceOp.AVG) for each pair; outer.step(); p.detach().copy_(k).
"""

import torch
from torch.nn.functional import cross_entropy

from helpers.checks.author import *
from helpers.exercises.nb21_little_communication.in_ranks import (
    DilocoSettings,
    Training,
    run_training,
)
from helpers.exercises.shared.gradients import (
    NO_GRAD_ADVICE,
    PARITY_MARGIN,
    SAME_CALLS_ADVICE,
    UNEQUAL_ADVICE,
    cut_batches,
    draw_samples,
    draw_weights,
)
from helpers.exercises.shared.in_ranks.classifier import build_classifier, flat


def case(draw: Draw) -> Case:
    n, size, every = draw.ranks, draw.whole(1, 3), draw.of(1, 2, 2, 3)
    rules = draw.of(0.05, 0.02), draw.of(0.7, 0.5), draw.of(0.9, 0.6)
    steps = draw.of(2 * every, 2 * every + 1, 3 * every, every, 3 * every - 1)
    rest, pixels, classes = draw.whole(0, size - 1), draw.whole(1, 3), draw.whole(2, 3)
    start, count = draw_weights(draw, pixels, classes), steps * size + rest
    own = [draw_samples(draw, count, pixels, classes) for _ in range(n)]
    parts = train_in_one_process(
        start, rules, [cut_batches(x, y, size, steps) for x, y in own], every
    )
    room = PARITY_MARGIN * max(largest(*(value for one in parts for value in one.values())), 1.0)
    right = [{"steps": "", **one} for one in parts]
    return Case(
        f"{plural(count, 'sample')} each, {plural(steps, 'step')} of {size}, synchronized every {every}",
        [(Training(start, rules, x, y, size, every, steps),) for x, y in own],
        right=NamedParts(right, room),
        facts={
            "bytes": steps // every * sum(w.nbytes for w in start),
            "calls": steps // every * len(start),
            "every": every,
            "twice": 2 * every,
            "steps": steps,
            "size": size,
            "outer_lr": rules[1],
            "momentum": rules[2],
        },
    )


def train_in_one_process(
    start: list[torch.Tensor],
    rules: DilocoSettings,
    batches: list[list[tuple[torch.Tensor, torch.Tensor]]],
    every: int,
) -> list[dict[str, torch.Tensor]]:
    """Train all ranks' models in one process; return each rank's weights as `run_training` does."""
    lr, outer_lr, momentum = rules
    models = [build_classifier(start) for _ in batches]
    inners = [torch.optim.AdamW(model.parameters(), lr) for model in models]
    found: list[dict[str, torch.Tensor]] = [{} for _ in models]
    kept = [p.detach().clone() for p in models[0].parameters()]
    outer = torch.optim.SGD(kept, outer_lr, momentum, nesterov=True)
    for step in range(1, len(batches[0]) + 1):
        for model, inner, own, seen in zip(models, inners, batches, found, strict=True):
            model.zero_grad()
            x, y = own[step - 1]
            cross_entropy(model(x), y).backward()
            seen[f"weights before step {step}"] = flat(model)
            inner.step()
            seen[f"weights after step {step}"] = flat(model)
        if step % every == 0:
            for k, *ps in zip(kept, *(model.parameters() for model in models), strict=True):
                k.grad = torch.stack([k - p.data for p in ps]).mean(0)
            outer.step()
            for model in models:
                for k, p in zip(kept, model.parameters(), strict=True):
                    p.data.copy_(k)
    return [seen | {"weights at the end": flat(m)} for m, seen in zip(models, found, strict=True)]


EXERCISE = Exercise(
    case,
    (
        OnlyCalls(("all_reduce",)),
        Calls(
            "all_reduce",
            text="as many bytes as the weights have, at each synchronization",
            why="At a synchronization, average each difference once, and send nothing else.",
        ),
        WaitsForAll(),
    ),
    failed=(
        NO_GRAD_ADVICE,
        HangAdvice(SAME_CALLS_ADVICE),
        CrashAdvice("", UNEQUAL_ADVICE, applies_if_killed=True),
    ),
    kind=Kind.MODULE,
    driver=run_training,
    reported=("steps",),
    sizes=(1, 2, 3, 4),
    count=16,
)
