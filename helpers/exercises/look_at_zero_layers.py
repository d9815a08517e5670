"""What is wrong with answers of notebook 11 that shard a layer's weight.

`LayersAre` is the `expected` value of a case: called with what a rank gave back, it gives "" or the
first thing that is wrong, as the learner reads it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch

from helpers.exercises.look_at_held import in_tensors, odd_one, of_the_layers
from helpers.exercises.look_at_sgd import apart
from helpers.exercises.look_at_zero import look_at_unequal_shards
from helpers.exercises.model import Case
from helpers.exercises.problems import first_problem
from helpers.ranks.failures import RankFailed
from helpers.ranks.run import Run


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
                f"once built, the layers hold {value['built']:,} elements, "
                f"{in_tensors(value['sizes'])}; this rank's shards have {self.own:,}, the whole "
                f"weights {self.whole:,}"
            )
        for where, held, sizes in value["held"]:
            back = where.startswith("backward")
            if held > self.most[back]:
                return (
                    f"{where}: {held:,} elements are held, {in_tensors(sizes)}. Enough are {self.own:,} "
                    f"for the shards{', as many for their gradients,' * back} and "
                    f"{self.activations:,} for what the layers keep of x"
                )
        return ""


def look_at_layers(case: Case, run: Run) -> str:
    """Say what a fully sharded layer mostly gets wrong."""
    if isinstance(run.failure, RankFailed) and "empty parameter list" in run.failure.error.message:
        return (
            "The layer has no parameter: `self.shard = torch.nn.Parameter(...)` is what an optimizer "
            "finds."
        )
    if isinstance(run.failure, RankFailed) and "number of gradients" in run.failure.error.message:
        return (
            "backward returns one value for each argument of forward after `ctx`, in their order: the "
            "gradient of a tensor that has one, None for all else (a shape, a module)."
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
    widths = case.inputs[0][2]
    known = of_the_layers(widths, case.world_size)
    if "once built" in problem and run.values[0]["trained"] > case.expected[0].own:
        return (
            "After __init__ the rank may keep its shard only: cut the weight, and keep your part."
        )
    if "once built" in problem and not run.values[0]["views"]:
        odd = odd_one(run.values[0]["sizes"], known)
        return (
            f"{odd}The shard has memory of its own, but the whole weight is held beside it: an "
            "attribute, a list or a closure keeps it. What is needed of it later is its shape."
        )
    if "once built" in problem:
        return (
            "After __init__ the rank may keep its shard only. A slice is a view, and a view keeps "
            "the whole storage: `clone()` it."
        )
    sizes: list[int] = next(
        (s for where, _, s in run.values[0]["held"] if problem.startswith(where)), []
    )
    if "forward, above" in problem:
        return odd_one(sizes, known) + (
            "The whole weight outlives forward: somebody keeps it for backward. autograd does, if "
            "it saw `x @ weight.T`; so do ctx.save_for_backward(weight) and attributes. Save `x` and "
            "the shard, and gather again in backward."
        )
    if "backward, below" in problem:
        return odd_one(sizes, known) + (
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
