"""21.4 DiLoCo (25 min, ●●●●○)

- Two optimizers: `inner` steps on each rank by itself, an outer one of your own steps when the ranks meet.
  Which weights does the outer one change, and what does it take for a gradient?
- Keep a copy of the weights of the last meeting. At the next one each rank's "gradient" is that copy minus
  its weights now; average it over the ranks. The outer step starts from the copy, and its result is the
  copy for the next time.
- kept = [p.detach().clone() ...]; outer = torch.optim.SGD(kept, lr=outer_lr, momentum=momentum,
  nesterov=True). At a meeting: k.grad = k - p.data; dist.all_reduce(k.grad, op=dist.ReduceOp.AVG) for each
  pair; outer.step(); p.data.copy_(k).
"""

from collections.abc import Callable
from typing import Any

import torch
from torch.nn.functional import cross_entropy

from helpers.checks.author import *
from helpers.exercises.nb21_little_communication.in_ranks import Rules, train
from helpers.exercises.shared.gradients import (
    GUARDED,
    PARITY,
    SAME_CALLS,
    UNEQUAL,
    batches_of,
    draw_samples,
    draw_weights,
)
from helpers.exercises.shared.in_ranks.classifier import classifier, flat
from helpers.views.plain import plural

Models = list[torch.nn.Module]
Kept = list[torch.Tensor]
PLAIN = (
    "This is the plain mean of the weights: local SGD. The outer optimizer goes {outer_lr} of the way, with "
    "momentum {momentum}."
)
FIRST = "The difference is taken from the very first weights each time: after a meeting keep the new ones."
ADVICE = {
    "steps": (
        "{samples} samples make len(x) // batch_size = {steps} steps of {size}: they are this rank's own "
        "already, and what is left over makes no step."
    )
}


def case(draw: Draw) -> Case:
    n, size, every = draw.ranks, draw.whole(1, 3), draw.of(1, 2, 2, 3)
    rules = draw.of(0.05, 0.02), draw.of(0.7, 0.5), draw.of(0.9, 0.6)
    steps = draw.of(2 * every, 2 * every + 1, 3 * every, every, 3 * every - 1)
    rest, pixels, classes = draw.whole(0, size - 1), draw.whole(1, 3), draw.whole(2, 3)
    start, count = draw_weights(draw, pixels, classes), steps * size + rest
    own = [draw_samples(draw, count, pixels, classes) for _ in range(n)]
    world = World(start, rules, [batches_of(x, y, size, steps) for x, y in own], every)
    parts = world.trained(world.nesterov())
    room = PARITY * max(largest(*(value for one in parts for value in one.values())), 1.0)
    judge = ByName(
        [{"steps": "", **one} for one in parts], room, lambda name, got: ADVICE.get(name, "")
    )

    def gives(words: str, outer: Callable[[], Outer], **ways: Any) -> Mistake:
        return judge.mistake(words, lambda: world.trained(outer(), **ways))

    return Case(
        f"{plural(count, 'sample')} each, {plural(steps, 'step')} of {size}, meetings every {every}",
        [(start, rules, x, y, size, every, steps) for x, y in own],
        right=judge,
        facts={
            "bytes": steps // every * sum(w.nbytes for w in start),
            "calls": steps // every * len(start),
            "every": every,
            "twice": 2 * every,
            "samples": count,
            "steps": steps,
            "size": size,
            "outer_lr": rules[1],
            "momentum": rules[2],
        },
    )


Outer = Callable[[Kept, Kept], None]
"""Adds to changes, which are zeros, what the mean of the ranks' differences makes of the weights."""


class World:
    """What all ranks' models become in one process, or where something is done otherwise."""

    def __init__(
        self,
        start: list[torch.Tensor],
        rules: Rules,
        batches: list[list[tuple[torch.Tensor, torch.Tensor]]],
        every: int,
    ) -> None:
        self.start, self.rules, self.batches, self.every = start, rules, batches, every

    def nesterov(
        self, sign: float = 1, momentum: float = -1.0, nesterov: bool = True, keep: bool = True
    ) -> Outer:
        """Make an outer optimizer, by the formulas of torch.optim.SGD. keep: its momentum is kept."""
        speeds: list[torch.Tensor] = []
        lr, mu = self.rules[1], self.rules[2] if momentum < 0 else momentum

        def step(changes: Kept, means: Kept) -> None:
            if not speeds:
                speeds.extend(torch.zeros_like(mean) for mean in means)
            for change, mean, v in zip(changes, means, speeds, strict=True):
                v.mul_(mu if keep else 0.0).add_(sign * mean)
                change -= lr * (sign * mean + mu * v if nesterov else v)

        return step

    def trained(
        self,
        outer: Outer,
        meets: bool = True,
        way: str = "",
        last: bool = False,
        count_from_0: bool = False,
        reset: bool = False,
        average: bool = False,
        clear: bool = True,
        first_batch: bool = False,
    ) -> list[dict[str, torch.Tensor]]:
        """Train; give what each rank would show. way: "first" counts from the very first weights, "from here"
        steps from the rank's own; the others are those of the mistakes, too."""
        models = [classifier(self.start) for _ in self.batches]
        inners = [torch.optim.AdamW(m.parameters(), self.rules[0]) for m in models]
        found: list[dict[str, torch.Tensor]] = [{} for _ in models]
        kepts = [[p.detach().clone() for p in m.parameters()] for m in models]
        steps = len(self.batches[0])
        for step in range(1, steps + 1):
            for model, own in zip(models, self.batches, strict=True):
                if clear:
                    model.zero_grad()
                x, y = own[0 if first_batch else step - 1]
                cross_entropy(model(x), y).backward()
            if average:
                _average_gradients(models)
            for model, inner, seen in zip(models, inners, found, strict=True):
                seen[f"weights before step {step}"] = flat(model)
                inner.step()
                seen[f"weights after step {step}"] = flat(model)
            at = step - 1 if count_from_0 else step
            if meets and (at % self.every == 0 or (last and step == steps)):
                self._meet(models, outer, kepts, way)
                if reset:
                    inners = [torch.optim.AdamW(m.parameters(), self.rules[0]) for m in models]
        return [
            seen | {"weights at the end": flat(m)} for m, seen in zip(models, found, strict=True)
        ]

    def _meet(self, models: Models, outer: Outer, kepts: list[Kept], way: str) -> None:
        """Let all ranks meet; kepts[r]: the weights of the last meeting that rank r keeps."""
        rows = zip(*(model.parameters() for model in models), strict=True)
        since = zip(*([self.start] * len(models) if way == "first" else kepts), strict=True)
        means = [
            torch.stack([k - p.data for k, p in zip(ks, ps, strict=True)]).mean(0)
            for ks, ps in zip(since, rows, strict=True)
        ]
        changes = [torch.zeros_like(mean) for mean in means]
        outer(changes, means)
        for model, kept in zip(models, kepts, strict=True):
            for p, k, change in zip(model.parameters(), kept, changes, strict=True):
                k.copy_((p.data if way == "from here" else k) + change)
                p.data.copy_(k)


def _average_gradients(models: Models) -> None:
    for ps in zip(*(model.parameters() for model in models), strict=True):
        mean = torch.stack([p.grad for p in ps if p.grad is not None]).mean(0)
        for p in ps:
            p.grad = mean.clone()


EXERCISE = Exercise(
    case,
    (
        OnlyCalls(("all_reduce",)),
        Travels(
            "all_reduce",
            "as many bytes as the weights have, every so many steps",
            why="At a meeting each parameter's difference travels once, and nothing else.",
        ),
        Awaited(),
    ),
    failed=(GUARDED, Stuck(SAME_CALLS), Failed("", UNEQUAL, died=True)),
    kind=Kind.MODULE,
    programme=train,
    reported=("steps",),
    sizes=(1, 2, 3, 4),
    count=16,
)
