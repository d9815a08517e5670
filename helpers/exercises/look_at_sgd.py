"""What is wrong with gradients or weights that notebook 08's ranks gave back, in words.

The objects here are the `expected` values of cases: called with what a rank returned, they give ""
or the first thing that is wrong, as the learner reads it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch

from helpers.exercises.compare import difference
from helpers.exercises.model import Case
from helpers.exercises.problems import first_problem, problems
from helpers.exercises.sgd_models import Grads
from helpers.ranks.failures import Deadlock, RankDied, RankFailed
from helpers.ranks.run import Run

PARITY = 1e-6
"""How far the ranks' weights may be from one process's: the target of the exercises."""


@dataclass(frozen=True)
class GradientsAre:
    """The gradients that a rank must end with. own: what each rank had before they were averaged.

    trained: the names that may have a gradient. shares: how much each rank counts.
    """

    wanted: Grads
    own: tuple[Grads, ...]
    rank: int
    trained: frozenset[str]

    def __call__(self, value: Any) -> str:
        got = value.get("grads") if isinstance(value, dict) else None
        if not isinstance(got, dict) or got.keys() != self.wanted.keys():
            return "its gradients did not come back"
        if value.get("weights kept") is not True:
            return "the weights have changed: average the gradients `p.grad`, leave `p` as it is"
        # those with a value tell most about the cause, so they are looked at first
        order = sorted(self.wanted, key=lambda name: self.wanted[name] is None)
        return next((p for name in order if (p := self._problem(name, got[name]))), "")

    def _problem(self, name: str, got: Any) -> str:
        wanted = self.wanted[name]
        if wanted is None and name not in self.trained:
            return "" if got is None else f"`{name}` is frozen and now has a gradient"
        if wanted is None:  # nobody used it: no gradient, or zeros
            zeros = isinstance(got, torch.Tensor) and not got.count_nonzero()
            return "" if got is None or zeros else f"`{name}` has a gradient, and nobody used it"
        if got is None:
            return f"`{name}` has no gradient here, though another rank has one"
        if not difference(wanted, got, PARITY):
            return ""
        own = [one[name] for one in self.own]
        return f"the gradient of `{name}` is wrong" + _relation(wanted, got, own, self.rank)


def _relation(wanted: torch.Tensor, got: Any, own: Sequence[torch.Tensor | None], rank: int) -> str:
    if not isinstance(got, torch.Tensor) or got.shape != wanted.shape or got.dtype != wanted.dtype:
        return f": {difference(wanted, got)}"
    if got.isnan().any():
        return ": it holds NaN"
    for other, theirs in enumerate(own):
        if theirs is not None and not difference(theirs, got, PARITY):
            return ": it is its own, unchanged" if other == rank else f": it is rank {other}'s"
    if factor := _factor(wanted, got):
        return f": it is {factor:.3g} times what it should be"
    return ""


def _factor(wanted: torch.Tensor, got: torch.Tensor) -> float:
    """Give k where `got` is k times `wanted`, else 0."""
    size = float((wanted * wanted).sum())
    k = float((wanted * got).sum()) / size if size else 0.0
    return k if k and torch.allclose(got, k * wanted, rtol=1e-3, atol=1e-6 * abs(k)) else 0.0


@dataclass(frozen=True)
class WeightsAre:
    """The weights that a rank must have after every step, and at the end where that is asked."""

    after: tuple[torch.Tensor, ...]
    at_the_end: torch.Tensor | None = None
    steps_here: bool = True

    def __call__(self, value: Any) -> str:
        got = value.get("weights") if isinstance(value, dict) else None
        if not isinstance(got, list):
            return "its weights did not come back"
        calls = len(self.after) if self.steps_here else 0
        if len(got) != calls:
            return f"optimizer.step() was called {_times(len(got))} here; {_times(calls)} is right"
        for step, (wanted, mine) in enumerate(zip(self.after, got, strict=False), 1):
            if problem := apart(wanted, mine):
                return f"after step {step} the weights {problem}"
        end = self.at_the_end
        problem = "" if end is None else apart(end, value.get("at the end"))
        return problem and f"at the end the weights {problem}"


@dataclass(frozen=True)
class TrainedAsOne:
    """What a rank must return from training that equals one process's, step by step."""

    losses: tuple[float, ...]
    weights: WeightsAre
    samples: int

    def __call__(self, value: Any) -> str:
        if problem := self.weights(value):
            return problem
        seen = value.get("samples")
        if seen != self.samples:
            return f"{seen} samples went through the model; its share is {self.samples}"
        return losses_problem(self.losses, value.get("losses"))


def losses_problem(wanted: Sequence[float], got: Any) -> str:
    """Say how the returned losses differ from the wanted ones, or ""."""
    if got is None:
        return "it returns no losses: a list of floats is wanted, one for each step"
    if problem := difference(list(wanted), got, PARITY):
        return f"the losses it returns: {problem}"
    return ""


def apart(wanted: torch.Tensor, got: Any) -> str:
    """Say how far weights are from one process's, or "" where that is no more than the target."""
    if not isinstance(got, torch.Tensor) or got.shape != wanted.shape:
        return "are not those of the model"
    far = float((got.double() - wanted.double()).abs().max())
    return "" if far <= PARITY else f"are {far:.1g} from one process's; {PARITY:g} is allowed"


def look_at_the_write(run: Run) -> str:
    """Say how a weight is written to in place, and with which dtype zeros are made."""
    if isinstance(run.failure, RankFailed) and "requires grad" in run.failure.error.message:
        return (
            "Autograd guards the weights: write into `p.data`, or under `with torch.no_grad():`, or "
            "into `p.grad`, whatever the task asks for."
        )
    if isinstance(run.failure, RankDied):
        return (
            "A tensor on one rank has more bytes than on another: `torch.zeros_like(p)` has the "
            "parameter's shape and dtype, torch.zeros(p.shape) is always float32."
        )
    return ""


def look_at_gradients(case: Case, run: Run) -> str:
    """Say what an average of gradients mostly gets wrong."""
    if wrote := look_at_the_write(run):
        return wrote
    if isinstance(run.failure, Deadlock):
        return (
            "Some ranks have no gradient for some parameters. A rank that skips a call leaves the "
            "others waiting: hand in zeros instead, so that all ranks make the same calls."
        )
    problem = first_problem(case, run)
    n = case.world_size
    if any("it is rank 0's" in each for each in problems(case, run)):
        return "Every rank has rank 0's gradient: the mean over all ranks is wanted."
    if "weights have changed" in problem:
        return "Nothing steps here: leave the mean in `p.grad`, whoever calls will step."
    if "no gradient here" in problem:
        return "The mean belongs to every rank: set `p.grad` also where backward left None."
    if "frozen" in problem:
        return "Leave a parameter with requires_grad=False alone: there is nothing to average."
    if "unchanged" in problem:
        return "The mean must be written back into `p.grad`: work on it in place, or copy it there."
    if f"is {n} times" in problem:
        return "This is the sum over the ranks: divide by the world size."
    if f"is {1 / n:.3g} times" in problem:
        return "It is divided by the world size once too often: ReduceOp.AVG divides already."
    if "times what" in problem:
        return (
            f"A rank without a gradient counts as zero: divide the sum by all {n} ranks, not by those "
            "that had one."
        )
    if "NaN" in problem:
        return "The mean loss of no samples is NaN, and NaN times 0 is NaN: begin from zeros."
    if "is wrong" in problem:
        return (
            "Does every rank hand in the same parameter in the same call? One that skips a missing "
            "gradient meets the others' next one."
        )
    return ""


def look_at_weighted(case: Case, run: Run) -> str:
    """Say what a weighted average of gradients mostly gets wrong."""
    if wrote := look_at_the_write(run):
        return wrote
    counts = [len(given[0]) for given in case.inputs]
    if isinstance(run.failure, Deadlock) and not all(counts):
        return (
            f"Rank {counts.index(0)} has no samples and so no gradients. It must make the same calls "
            "as the others: let it hand in zeros."
        )
    if isinstance(run.failure, Deadlock):
        return ""
    problem = first_problem(case, run)
    if "is wrong" in problem and "NaN" not in problem:
        return (
            f"The ranks have {', '.join(map(str, counts))} samples, {sum(counts)} in all. Multiply "
            "each gradient by its own number, add up, and divide by the number of all samples."
        )
    return look_at_gradients(case, run)


def look_at_training(case: Case, run: Run) -> str:
    """Say what training on several ranks mostly gets wrong."""
    if wrote := look_at_the_write(run):
        return wrote
    if run.failure is not None or case.expected is None:
        return ""
    problem = first_problem(case, run)
    before = [_first(value, "before") for value in run.values]
    after = [_first(value, "weights") for value in run.values]
    if "samples went" in problem:
        return (
            "Cut this rank's part out of each batch first: the others compute the rest. And keep the "
            "loss that you called backward on: no second forward is needed to return it."
        )
    if "losses" in problem:
        return (
            "Return, on every rank, the mean over the whole batch: the mean of the ranks' losses, "
            "each taken before the step, as a float."
        )
    if any(b is None for b in before) or any(a is None for a in after):
        return ""
    if any(not torch.equal(before[0], b) for b in before[1:]):
        return "The ranks begin with different weights: broadcast rank 0's before the first step."
    moved = after[0] - before[0]
    if not moved.any():
        return (
            "The weights do not move: is the gradient still there when optimizer.step() is called?"
        )
    wanted: torch.Tensor = case.expected[0].weights.after[0] - before[0]
    factor = _factor(wanted, moved) if moved.shape == wanted.shape else 0.0
    if factor and abs(factor - 1) > 0.01:
        return f"The first step is {factor:.3g} times as long as it should be: how is it divided?"
    if any(not torch.equal(after[0], a) for a in after[1:]):
        return (
            "The ranks are apart after the first step: do the gradients get averaged between "
            "backward and optimizer.step(), on every rank?"
        )
    if not factor:
        return (
            "The ranks agree with each other, not with one process: does every sample of the batch "
            "belong to exactly one rank? Are gradients of the step before cleared?"
        )
    return "The first step is right, a later one not: are the gradients cleared before each step?"


def _first(value: Any, key: str) -> Any:
    found = value.get(key) if isinstance(value, dict) else None
    good = isinstance(found, list) and found and isinstance(found[0], torch.Tensor)
    return found[0] if good and found else None


def _times(count: int) -> str:
    return {0: "never", 1: "once"}.get(count, f"{count} times")
