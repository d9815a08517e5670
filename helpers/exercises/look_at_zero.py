"""What is wrong with answers of notebook 11 that shard the optimizer's state.

The objects here are the `expected` values of cases: called with what a rank gave back, they give ""
or the first thing that is wrong, as the learner reads it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import torch

from helpers.exercises.look_at_held import in_tensors, odd_one, of_the_classifier
from helpers.exercises.look_at_sgd import PARITY, apart
from helpers.exercises.model import Case
from helpers.exercises.problems import first_problem
from helpers.exercises.sgd_models import classifier, weights
from helpers.exercises.zero_truth import stepped
from helpers.ranks.failures import Deadlock, RankDied, RankFailed
from helpers.ranks.run import Run


@dataclass(frozen=True)
class SteppedAs:
    """The weights after each step, and the most that an optimizer may keep between steps.

    states: how many tensors of state the optimizer keeps for each weight. own: elements of a share.
    """

    after: tuple[torch.Tensor, ...]
    states: int
    own: int
    slack: int

    @property
    def most(self) -> int:
        """Give the elements that it may keep: the state, its slice of weights and of gradients."""
        return (self.states + 2) * self.own + self.slack

    def __call__(self, value: Any) -> str:
        got = value.get("weights") if isinstance(value, dict) else None
        if not isinstance(got, list) or len(got) != len(self.after):
            return "its weights did not come back"
        for step, (wanted, mine) in enumerate(zip(self.after, got, strict=True), 1):
            if problem := apart(wanted, mine):
                return f"after step {step} the weights {problem}"
        state, kept = value.get("state", 0), value.get("kept", 0)
        if state > self.states * self.own + self.slack:
            return (
                f"its optimizer keeps {state:,} elements of state; the share of a rank is "
                f"{self.states} × {self.own:,}"
            )
        if kept > self.most:
            return (
                f"{kept:,} elements are still held after step(), {in_tensors(value['sizes'])}. Enough "
                f"are {self.states} × {self.own:,} for the state, {self.own:,} for the shard and as "
                "many for its gradient"
            )
        return ""


def look_at_optimizer(case: Case, run: Run) -> str:
    """Say what an optimizer with sharded state mostly gets wrong."""
    if failed := look_at_unequal_shards(run):
        return failed
    if run.failure is not None or case.expected is None:
        return ""
    wanted: SteppedAs = case.expected[0]
    problem = first_problem(case, run)
    if problem.startswith("after step") and (mistake := _known_mistake(case, run)):
        return mistake
    if problem.startswith("after step 1 "):
        return _first_step(case, run, wanted)
    if problem.startswith("after step"):
        return (
            "The first step is right, a later one not. Hand the optimizer this step's slice of the "
            "gradient each time, and let it start from the weights that the step before left."
        )
    if "elements of state" in problem:
        return (
            f"{wanted.own * case.world_size:,} elements over {case.world_size} ranks are "
            f"{wanted.own:,} each. Give the inner optimizer one parameter with this rank's slice of the "
            "flat weights: it makes state for what it is given, and for nothing else. Whole "
            "parameters are too coarse: the first one alone has most of the elements."
        )
    if "still held" in problem:
        known = of_the_classifier(wanted.own, case.world_size)
        odd = odd_one(run.values[0]["sizes"], known)
        return (
            f"{odd}Something whole outlives step(): an attribute that holds it, or a view of it, which "
            "keeps all of its storage alive. `clone()` the slice, and build what is whole inside step()."
        )
    return ""


def _known_mistake(case: Case, run: Run) -> str:
    """Say which options the inner optimizer has not got, or that it has lost its state."""
    batches, seed, name, options, _ = case.inputs[0]
    others = {"`**options`": {}} | {
        f"`{left_out}`": {name: value for name, value in options.items() if name != left_out}
        for left_out in options
    }
    got = run.values[0]["weights"]

    def alike(given: Mapping[str, Any], forgetful: bool = False) -> bool:
        other = stepped(batches, seed, name, given, forgetful=forgetful)
        return all(torch.allclose(a, b, atol=PARITY) for a, b in zip(other, got, strict=True))

    causes = [
        f"without {words}: hand all options on, `optimizer_class([shard], **options)`"
        for words, given in others.items()
        if alike(given)
    ][:1]
    if alike(options, forgetful=True):
        causes.append(
            "with an inner optimizer made anew in each step, which has lost its state: make it once, in "
            "__init__"
        )
    return f"These are the steps of {name} {'. Or '.join(causes)}." if causes else ""


def _first_step(case: Case, run: Run, wanted: SteppedAs) -> str:
    before = weights(classifier(case.inputs[0][1]))
    target = wanted.after[0]
    for rank, value in enumerate(run.values):
        got = value["weights"][0]
        right = (got - target).abs() <= PARITY
        if right.all():
            continue
        still = got == before
        if still.all():
            return (
                "The weights do not move: what the inner optimizer has stepped must be copied back "
                "into `params`, and those are what the caller trains."
            )
        if right[: len(right) // case.world_size * case.world_size].all():
            return (
                f"{len(right):,} elements do not divide by {case.world_size}: the last ones are left "
                "out. Round the share up and pad with zeros."
            )
        own = slice(rank * wanted.own, (rank + 1) * wanted.own)
        if right[own].all() and still[~right].all():
            return (
                f"Rank {rank} has stepped its own slice, and nobody else's has reached it: every rank "
                "must end with all slices, from all_gather."
            )
        moved, should = got - before, target - before
        factor = float((moved * should).sum() / (should * should).sum())
        if abs(factor - 1) > 0.01 and torch.allclose(moved, factor * should, atol=1e-6):
            return (
                f"The first step is {factor:.3g} times as long as it should be. The gradients are "
                "averaged already: take them as they are."
            )
        return (
            "Check the order: gradients flat, in the order of `params`, your slice into the shard's "
            "`.grad`, inner step, all_gather, cut to the number of elements, back into `params`."
        )
    return ""


def look_at_unequal_shards(run: Run) -> str:
    """Say what ends a run in which tensors of different lengths or dtypes meet in one call."""
    failure = run.failure
    said = failure.error.message if isinstance(failure, RankFailed) else ""
    if "dtype" in said or "tensor type" in said:
        return (
            "Two dtypes meet. The weights need not be float32, and `torch.empty(n)` and "
            "`torch.zeros(n)` are: `new_empty(n)` and `new_zeros(n)` of a tensor take its dtype over."
        )
    if isinstance(failure, RankDied) or "size" in said or "Check failed" in said:
        return (
            "Shards must have one length on all ranks. Round the share up, "
            "`size = -(-n // world_size)`, and pad the last one with zeros: "
            "`torch.nn.functional.pad(flat, (0, size * world_size - n))`."
        )
    if isinstance(failure, Deadlock):
        return "Every rank makes the same calls, in the same order: no call may stand in a branch."
    return ""
