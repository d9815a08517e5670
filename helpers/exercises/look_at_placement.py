"""What is wrong with a model split over two ranks, or run by torch's own pipeline, in words."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch

from helpers.exercises.compare import difference
from helpers.exercises.look_at_pipeline import Grads, grads_problem, problem_or_error
from helpers.exercises.model import Case
from helpers.exercises.pipeline_models import StageTruth
from helpers.ranks.failures import Deadlock, RankDied
from helpers.ranks.run import Run
from helpers.views.plain import plural


@dataclass(frozen=True)
class HalfIs:
    """What a rank must give back from one step of a model split in two."""

    rank: int
    loss: torch.Tensor
    layers: Sequence[int]
    grads: Grads

    def __call__(self, value: Any) -> str:
        if not isinstance(value, dict):
            return "its part did not come back"
        return (
            self._layers(value.get("ran"))
            or grads_problem(self.grads, value.get("grads"))
            or self._loss(value)
        )

    def _layers(self, ran: Any) -> str:
        if not ran:
            return "none of its layers ran"
        for index in ran:
            if index not in self.layers:
                return f"layer {index} ran here; it belongs to rank {1 - self.rank}"
        for index in self.layers:
            if list(ran).count(index) != 1:
                return f"layer {index} ran {plural(list(ran).count(index), 'time')}; once is right"
        return ""

    def _loss(self, value: dict[str, Any]) -> str:
        loss = value.get("loss")
        if self.rank == 0:
            return "" if loss is None else "rank 0 does not know the loss: it returns None"
        if loss is None:
            return "it returns no loss"
        if problem := difference(self.loss, loss, 1e-5):
            return f"its loss: {problem}"
        if value.get("graph"):
            return "its loss still hangs on the graph: return loss.detach()"
        return ""


@dataclass(frozen=True)
class TorchsStageDid:
    """What a stage must give back from one step of Schedule1F1B."""

    rank: int
    stages: int
    truth: StageTruth

    def __call__(self, value: Any) -> str:
        if not isinstance(value, dict):
            return "its stage's report did not come back"
        return (
            self._steps(value.get("steps"))
            or grads_problem(self.truth.gradients, value.get("grads"))
            or self._losses(value.get("losses"))
        )

    def _steps(self, steps: Any) -> str:
        if not steps:
            return "no schedule of torch.distributed.pipelining ran a step here"
        if set(steps) == {"Schedule1F1B"} and len(steps) > 1:
            return f"{len(steps)} steps of Schedule1F1B ran here; one is wanted"
        if steps != ["Schedule1F1B"]:
            return f"{' and '.join(steps)} ran here; one step of Schedule1F1B is wanted"
        return ""

    def _losses(self, losses: Any) -> str:
        if self.rank < self.stages - 1:
            return "" if losses is None else "only the last stage has losses: return None here"
        if losses is None:
            return "it returns no losses"
        if problem := difference(list(self.truth.losses), _as_list(losses), 1e-5):
            return f"its losses: {problem}"
        return ""


def _as_list(losses: Any) -> Any:
    if isinstance(losses, torch.Tensor):
        return losses.detach().tolist()
    if isinstance(losses, (list, tuple)):
        return [loss.detach().item() if isinstance(loss, torch.Tensor) else loss for loss in losses]
    return losses


def look_at_split(case: Case, run: Run) -> str:
    """Say what a hand-made split mostly gets wrong."""
    if isinstance(run.failure, RankDied):
        return (
            "The two sides disagree on shape or dtype. Receive len(y) rows, model[cut].in_features "
            "columns, in the dtype of model[cut].weight; send what model[:cut] gave, no layer more."
        )
    if isinstance(run.failure, Deadlock):
        return (
            "Two messages, one each way: rank 0 sends the activation and receives its gradient; "
            "rank 1 receives the activation and, after its backward, sends the gradient."
        )
    problem = problem_or_error(case, run)
    if "no len()" in problem or "'shape'" in problem or "'size'" in problem:
        return "On rank 1 `x` is None, and on rank 0 `y` is: the number of rows there is len(y)."
    if "implicitly created only for scalar" in problem:
        return (
            "The activation is no single number, so its backward has to be told the gradient: receive "
            "it from rank 1, then `activation.backward(gradient)`."
        )
    if "requires grad" in problem or "grad_fn" in problem or "NoneType" in problem:
        return (
            "A tensor that came by recv has no gradient by itself: call requires_grad_() on it before "
            "the layers use it; after backward its `.grad` is there to be sent."
        )
    if "belongs to rank" in problem and "ran" in problem or " ran 0 times" in problem:
        return "Rank 0 computes with model[:cut] only, rank 1 with model[cut:]."
    if "has no gradient" in problem:
        return (
            "Both ranks need a backward: rank 1 from the loss, rank 0 from its activation, with the "
            "gradient that came back: a.backward(grad)."
        )
    if "returns no loss" in problem:
        return "A printed loss is not returned: `return loss.detach()` on rank 1."
    if "rank 0 does not know" in problem:
        return "Only rank 1 computes a loss: rank 0 returns None."
    if "times; once" in problem:
        return "Keep what forward gave: backward needs that graph, not a second forward."
    if "is wrong" in problem:
        return (
            "Send back `.grad` of the tensor that rank 1 received (after backward), and receive it on "
            "rank 0 into a new tensor of the activation's shape."
        )
    return ""


def look_at_torchs(case: Case, run: Run) -> str:
    """Say what a first use of torch.distributed.pipelining mostly gets wrong."""
    microbatches = case.inputs[0][2]
    problem = problem_or_error(case, run)
    if "has no gradient" in problem:
        return "Without a loss_fn a schedule runs forward only: give Schedule1F1B loss_fn=loss_fn."
    if "times what" in problem or "is wrong" in problem:
        return (
            "The schedule divides gradients by the number of microbatches already (scale_grads). Give "
            "it the mean loss of one microbatch, and call step once."
        )
    if "no schedule" in problem:
        return "Build a PipelineStage, give it to Schedule1F1B, and call its step()."
    if "steps of" in problem:
        return "step() takes the whole batch and cuts it into microbatches by itself: call it once."
    if "Schedule1F1B is wanted" in problem:
        return "The same call with another class: Schedule1F1B."
    if "only the last stage" in problem:
        return "Return the losses where rank == world_size - 1, and None on all other ranks."
    if "returns no losses" in problem:
        return "Give step() a list: step(target=y, losses=found). It puts the losses in there."
    if "its losses" in problem:
        return (
            f"One loss for each of the {microbatches} microbatches, in order: they are in the list that "
            "you hand to step() as `losses`. What step() returns are the outputs."
        )
    if isinstance(run.failure, Deadlock):
        return "Every rank calls step(): the first with x, the last with target=y, the others bare."
    return ""
