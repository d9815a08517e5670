"""What exercises of notebook 08 share: gradients that are given, and what one process would train."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch.nn.functional import cross_entropy

from helpers.checks.author import *
from helpers.checks.rules import Amount, amount_of
from helpers.exercises.nb08_synchronous_sgd.in_ranks import Rule, Weights, classifier, flat
from helpers.ranks.run import Run
from helpers.trace.events import Trace
from helpers.views.plain import plural

Grads = list[torch.Tensor]
Samples = tuple[torch.Tensor, torch.Tensor]
PARITY = 1e3
"""How many times coarser than float64's usual room the exercises' 1e-6 is."""
STEPS = "Nothing steps here: leave the mean in `p.grad`, whoever calls will step."
SEVEN_DIGITS = (
    "The numbers agree to about seven digits, as if they had passed through float32: keep the dtype of "
    "`p`."
)
UNEQUAL = (
    "Tensors of different sizes met in one call. Does every rank go through the same parameters in the same "
    "order, with `torch.zeros_like(p)`, which has the parameter's shape and dtype, where it has nothing?"
)
SAME_CALLS = (
    "A collective waits for all ranks: every rank must make the same calls, in the same order."
)
GUARDED = Failed(
    "requires grad",
    "Autograd guards the weights: write into `p.data`, or under `with torch.no_grad():`, or into "
    "`p.grad`, whatever the task asks for.",
)
NO_GRADIENT_YET = Failed(
    "'NoneType' object has no attribute '(zero_|fill_|data|detach_|mul_|div_)'",
    "`p.grad` is None until a backward has set it, and again after `zero_grad()`, which clears what is there "
    "and leaves None alone.",
)


@dataclass(frozen=True)
class Travels:
    """All calls of `op` on a rank together carry at most so many bytes, in at most so many calls."""

    op: str
    text: str
    nbytes: Amount = "bytes"
    calls: Amount = "calls"
    why: str = ""
    forbids: bool = False
    on_each_call: bool = False

    def problem(self, trace: Trace, case: Case) -> str:
        for rank in range(case.world_size):
            made = [event for event in trace.of(rank) if event.op == self.op]
            handed = sum(event.nbytes for event in made)
            most, calls = (amount_of(amount, case, rank) for amount in (self.nbytes, self.calls))
            if handed > most:
                what = f"hands {handed:,} bytes to {self.op} in all; {most:,} are enough."
            elif len(made) > calls:
                what = f"makes {plural(len(made), 'call')} of {self.op}; {calls} are enough."
            else:
                continue
            return f"rank {rank} {what}{' ' * bool(self.why)}{self.why}"
        return ""


# --- gradients that are given ---------------------------------------------------------------------


@dataclass(frozen=True)
class Gradients(ByName):
    """Judges gradients by name. unused: those that no rank has, which may be None or zeros."""

    unused: frozenset[str] = frozenset()

    def first(self, got: Any, rank: int) -> tuple[str, str]:
        if isinstance(got, dict):
            wanted = self.right[rank]
            got = {n: wanted[n] if n in self.unused and v is None else v for n, v in got.items()}
        return super().first(got, rank)

    def larger(self, words: str, values: Sequence[Parts], times: float) -> Mistake:
        """Make a mistake of values that are so many times larger, and rounded as coarsely."""
        size = {name: times * self._scale(name) for name in values[0]}  # type: ignore[operator]
        return Mistake(
            lambda got, rank: (
                self.first(got, rank)[0] in values[rank]
                and all(same(v, got[k], scale=size[k]) for k, v in values[rank].items())
            ),
            words,
        )

    def roughly(self) -> Mistake:
        """Make a mistake of float64 gradients that are right to float32's digits."""
        assert isinstance(self.scale, Mapping)
        room = {name: max(1e4 * size, 1e-36) for name, size in self.scale.items()}
        rough = Gradients(self.right, room, unused=self.unused)
        return Mistake(lambda got, rank: rough(got, rank) is None, SEVEN_DIGITS)


def total(grads: Sequence[torch.Tensor | None], shares: Sequence[float] | None = None) -> Any:
    """Add up gradients, each times its share; a missing one counts as zero, None if all are missing."""
    shares = shares or [1.0] * len(grads)
    parts = [(g.double() * s, g.dtype) for g, s in zip(grads, shares, strict=True) if g is not None]
    return torch.stack([part for part, _ in parts]).sum(0).to(parts[0][1]) if parts else None


Own = Sequence[Mapping[str, torch.Tensor | None]]
"""Each rank's gradients by name."""


def each_total(own: Own, shares: Sequence[float]) -> dict[str, Any]:
    """Add up the ranks' gradients, name by name; None for what no rank has."""
    return {name: total([one[name] for one in own], shares) for name in own[0]}


def has_nan(got: Any, rank: int) -> bool:
    """Tell whether some gradient holds NaN."""
    return any(isinstance(g, torch.Tensor) and bool(g.isnan().any()) for g in got.values())


# --- what one process trains ----------------------------------------------------------------------


def draw_weights(draw: Draw, pixels: int, classes: int, hidden: int = 3) -> list[torch.Tensor]:
    """Draw the weights of a classifier."""
    shapes = (hidden, pixels), (hidden,), (classes, hidden), (classes,)
    return [torch.randn(s, generator=draw.generator()).double() / 2 for s in shapes]


def draw_samples(draw: Draw, count: int, pixels: int, classes: int) -> Samples:
    """Draw samples, flat ones or pictures of one row."""
    x = torch.randn(count, pixels, generator=draw.generator()).double()
    y = torch.randint(classes, (count,), generator=draw.generator())
    return (x[:, None, None] if draw.of(True, False) else x), y


def draw_rule(draw: Draw) -> Rule:
    """Draw how the optimizer steps."""
    return draw.of(0.5, 0.25), draw.of(0.0, 0.9, 0.5), draw.of(0.0, 0.0, 0.01)


Models = list[torch.nn.Module]
Change = Callable[[int, Models], None]
"""What is done with all ranks' models in step number 1, 2, ..."""


def nothing(step: int, models: Models) -> None:
    """Leave them as they are."""


def forget(step: int, models: Models) -> None:
    """Set all gradients to zero."""
    for model in models:
        model.zero_grad(set_to_none=False)


def average_grads(divide_by: float = 0.0) -> Change:
    """Give every model the sum of the gradients, divided by their number or by another one."""

    def change(step: int, models: Models) -> None:
        for ps in zip(*(model.parameters() for model in models), strict=True):
            mean = sum(p.grad for p in ps if p.grad is not None) / (divide_by or len(models))
            for p in ps:
                p.grad = mean.clone()  # type: ignore[union-attr]

    return change


def average_weights(divide_by: float = 0.0) -> Change:
    """Give every model the sum of the weights, divided by their number or by another one."""

    def change(step: int, models: Models) -> None:
        for ps in zip(*(model.parameters() for model in models), strict=True):
            mean = sum(p.data for p in ps) / (divide_by or len(models))
            for p in ps:
                p.data.copy_(mean)

    return change


def at(when: Callable[[int], bool], change: Change) -> Change:
    """Change something in some steps only."""
    return lambda step, models: change(step, models) if when(step) else None


def trained(
    starts: Sequence[Weights],
    rule: Rule,
    batches: Sequence[Sequence[Samples]],
    grads: Change = nothing,
    before: Change = nothing,
    after: Change = nothing,
    clear: bool = True,
) -> list[dict[str, Any]]:
    """Train one model for each start, on batches[step][model]: what its author's ranks would show.

    grads, before, after: what happens after backward, before the step and after it.
    """
    models = [classifier(start) for start in starts]
    lr, momentum, decay = rule
    speed = [[torch.zeros_like(p) for p in model.parameters()] for model in models]
    found: list[dict[str, Any]] = [{} for _ in models]
    for step, parts in enumerate(batches, 1):
        for model, (x, y) in zip(models, parts, strict=True):
            if clear:
                model.zero_grad()
            cross_entropy(model(x), y).backward()
        grads(step, models)
        before(step, models)
        for model, speeds, seen in zip(models, speed, found, strict=True):
            seen[f"weights before step {step}"] = flat(model)
            for p, v in zip(model.parameters(), speeds, strict=True):
                v.mul_(momentum).add_(p.grad + decay * p.data)
                p.data -= lr * v
            seen[f"weights after step {step}"] = flat(model)
        after(step, models)
    return [seen | {"weights at the end": flat(m)} for m, seen in zip(models, found, strict=True)]


def gradients(weights: Weights, x: torch.Tensor, y: torch.Tensor) -> Grads:
    """Give the gradients of the mean loss over one microbatch."""
    model = classifier(weights)
    cross_entropy(model(x), y).backward()
    return [p.grad for p in model.parameters() if p.grad is not None]


def batches_of(x: torch.Tensor, y: torch.Tensor, size: int, steps: int) -> list[Samples]:
    """Cut the samples of each step out of x and y."""
    cuts = [slice(k * size, (k + 1) * size) for k in range(steps)]
    return [(x[cut], y[cut]) for cut in cuts]


def loss(weights: torch.Tensor, like: Weights, x: torch.Tensor, y: torch.Tensor) -> float:
    """Give the mean loss of some samples by these weights, which come as one vector."""
    parts = weights.split([w.numel() for w in like])
    model = classifier([part.view_as(w) for part, w in zip(parts, like, strict=True)])
    with torch.no_grad():
        return float(cross_entropy(model(x), y))


def some_made_none(case: Case, run: Run) -> bool:
    """Tell whether some rank made no call at all, though it had something to hand in."""
    have = case.facts["have"]
    return any(n and not run.trace.of(rank) for rank, n in enumerate(have))
