"""What is wrong with answers of notebook 11 that shard the optimizer's state or a layer's weight.

The objects here are the `expected` values of cases: called with what a rank gave back, they give ""
or the first thing that is wrong, as the learner reads it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch

from helpers.exercises.look_at_sgd import PARITY, apart
from helpers.exercises.model import Case
from helpers.exercises.problems import first_problem
from helpers.exercises.sgd_models import classifier, weights
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
                f"{kept:,} elements are still held after step(), {state:,} of them state of a "
                f"torch.optim optimizer; {self.most:,} are enough"
            )
        return ""


@dataclass(frozen=True)
class LayersAre:
    """What a stack of sharded layers must compute, and the most that it may hold between layers.

    squares: the squared length of the mean gradient, over all shards, in each step. own: elements of
    this rank's shards. whole: of all weights. activations: what forward keeps, with room.
    """

    outputs: tuple[torch.Tensor, ...]
    inputs: tuple[torch.Tensor, ...]
    squares: tuple[float, ...]
    own: int
    whole: int
    activations: int

    @property
    def most(self) -> tuple[int, int]:
        """Give the elements that it may hold between layers in forward, and in backward."""
        return self.own + self.activations, 2 * self.own + self.activations

    def __call__(self, value: Any) -> str:
        if not isinstance(value, dict) or not isinstance(value.get("outputs"), list):
            return "its outputs did not come back"
        if value["by torch"]:
            return "its parameters are DTensors, cut by torch: cut the weight by hand"
        for step in range(len(self.outputs)):
            if problem := apart(self.outputs[step], value["outputs"][step]):
                return f"step {step + 1}: the outputs {problem}"
            got = value["x.grad"][step]
            if got is None:
                return "no gradient reaches the input `x`"
            if problem := apart(self.inputs[step], got):
                return f"step {step + 1}: the gradients of the input {problem}"
        return self._held_too_much(value)

    def _held_too_much(self, value: dict[str, Any]) -> str:
        if value["built"] > self.own + self.activations // 4:
            return (
                f"once built, the layers hold {value['built']:,} elements; this rank's shards have "
                f"{self.own:,}, the whole weights {self.whole:,}"
            )
        for where, held in value["held"]:
            most = self.most[where.startswith("backward")]
            if held > most:
                return f"{where}: {held:,} elements are held; {most:,} are enough"
        return ""


def look_at_optimizer(case: Case, run: Run) -> str:
    """Say what an optimizer with sharded state mostly gets wrong."""
    if failed := look_at_unequal_shards(run):
        return failed
    if run.failure is not None or case.expected is None:
        return ""
    wanted: SteppedAs = case.expected[0]
    problem = first_problem(case, run)
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
        return (
            "Something whole outlives step(): an attribute that holds the flat weights or "
            "gradients, or a view of them, which keeps all of its storage alive. `clone()` the slice, "
            "and build what is whole inside step()."
        )
    return ""


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


def look_at_layers(case: Case, run: Run) -> str:
    """Say what a fully sharded layer mostly gets wrong."""
    if isinstance(run.failure, RankFailed) and "empty parameter list" in run.failure.error.message:
        return (
            "The layer has no parameter: `self.shard = torch.nn.Parameter(...)` is what an optimizer "
            "finds."
        )
    if failed := look_at_unequal_shards(run):
        return failed
    if run.failure is not None or case.expected is None:
        return ""
    problem = first_problem(case, run)
    if "step 1: the outputs" in problem:
        return (
            "Before any training, the gathered weight must be the very one that the layer was built "
            f"from. Is what was padded cut off? {case.world_size} does not divide every number of rows. "
            "forward is `x @ weight.T`."
        )
    if "gradient reaches" in problem or "gradients of the input" in problem:
        return (
            "The gradient of the input is `grad @ weight`, with the whole weight, gathered again. It "
            "belongs to this rank's samples: no communication, no division."
        )
    if "the outputs" in problem:
        return _weight_gradient(case, run)
    if "once built" in problem:
        return (
            "After __init__ the rank may keep its shard only. A slice is a view, and a view keeps "
            "the whole storage: `clone()` it."
        )
    if "forward, above" in problem:
        return (
            "The whole weight outlives forward: somebody keeps it for backward. autograd does, if "
            "it saw `x @ weight.T`; so do ctx.save_for_backward(weight) and attributes. Save `x` and "
            "the shard, and gather again in backward."
        )
    if "backward, below" in problem:
        return (
            "Something whole outlives a layer's backward: the gathered weight, or the gradient of "
            "the whole weight. Only the shard's gradient may stay; a view of a whole gradient keeps "
            "all of it."
        )
    return ""


def _weight_gradient(case: Case, run: Run) -> str:
    assert case.expected is not None
    got = sum(value["squares"][0] for value in run.values) ** 0.5
    wanted = case.expected[0].squares[0] ** 0.5
    n, ratio = case.world_size, got / wanted
    if got == 0:
        return "The shards have no gradient after backward: return one for the shard."
    if abs(ratio - n) < 0.01 * n:
        return f"The gradient of the weight is the sum over the ranks: divide it by {n}."
    if abs(ratio * n - 1) < 0.01:
        return "The gradient of the weight is divided twice: ReduceOp.AVG divides already."
    if abs(ratio - 1) < 0.01:
        return (
            "The gradient has the right length and goes to the wrong place: reduce_scatter must cut "
            "it as you have cut the weight, padding and order alike."
        )
    return (
        "The outputs are right until the first step of the optimizer, so the shard's gradient is "
        "wrong. It is this rank's part of the mean over all ranks of `grad.T @ x`."
    )


def look_at_unequal_shards(run: Run) -> str:
    """Say what ends a run in which the ranks hand in different numbers of elements."""
    failure = run.failure
    said = failure.error.message if isinstance(failure, RankFailed) else ""
    if isinstance(failure, RankDied) or "size" in said or "Check failed" in said:
        return (
            "Shards must have one length on all ranks. Round the share up, "
            "`size = -(-n // world_size)`, and pad the last one with zeros: "
            "`torch.nn.functional.pad(flat, (0, size * world_size - n))`."
        )
    if isinstance(failure, Deadlock):
        return "Every rank makes the same calls, in the same order: no call may stand in a branch."
    return ""
