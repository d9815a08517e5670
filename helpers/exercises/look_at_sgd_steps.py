"""What is wrong with answers of notebook 08 that synchronise less often, or through a server."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch

from helpers.exercises.look_at_sgd import GradientsAre, look_at_the_write
from helpers.exercises.model import Case
from helpers.exercises.problems import first_problem, problems
from helpers.exercises.sgd_models import Grads
from helpers.ranks.failures import Deadlock
from helpers.ranks.run import Run


@dataclass(frozen=True)
class AccumulatedAre:
    """The gradients that a rank must have after each step, a microbatch at a time."""

    wanted: tuple[Grads, ...]
    microbatches: int
    size: int
    world_size: int

    def __call__(self, value: Any) -> str:
        steps = value.get("grads") if isinstance(value, dict) else None
        if not isinstance(steps, list) or len(steps) != len(self.wanted):
            return "its gradients did not come back"
        for number, (wanted, got) in enumerate(zip(self.wanted, steps, strict=True), 1):
            check = GradientsAre(wanted, (), 0, frozenset(wanted))
            if problem := check({"grads": got, "weights kept": value.get("weights kept")}):
                return f"step {number}: {problem}"
        if value.get("largest") != self.size:
            return (
                f"{value.get('largest')} samples go through the model at once; "
                f"a microbatch has {self.size}"
            )
        backwards = self.microbatches * len(self.wanted)
        if value.get("backwards") != backwards:
            return (
                f"backward ran {value.get('backwards')} times for {backwards} microbatches: "
                "what forward keeps is held until then"
            )
        return ""


def look_at_accumulated(case: Case, run: Run) -> str:
    """Say what accumulation mostly gets wrong."""
    if run.failure is not None or case.expected is None:
        return ""
    check = case.expected[0]
    problem = check(run.values[0])
    k, n = check.microbatches, check.world_size
    if "at once" in problem or "backward ran" in problem:
        return "One microbatch at a time: forward and backward, so that its memory is free again."
    if problem.startswith("step 2"):
        return (
            "The first step is right, the second not: its gradients are added to those of the first. "
            "Clear them at the start, once, before the loop."
        )
    if "weights have changed" in problem:
        return "Nothing steps here: leave the mean in `p.grad`, whoever calls will step."
    for factor, words in (
        (k, f"the sum over the {k} microbatches: divide each loss by their number"),
        (n, "the sum over the ranks: divide by the world size"),
        (k * n, "the sum over ranks and microbatches: divide by both"),
        (1 / k, "divided by the number of microbatches twice"),
        (1 / n, "divided by the world size twice"),
    ):
        if factor != 1 and f"is {factor:.3g} times" in problem:
            return f"This is {words}."
    if "times what" in problem:
        return (
            f"Each loss is a mean over its microbatch: divide it by the number of microbatches, {k}, "
            "and the sum over the ranks by the world size."
        )
    if "is wrong" in problem and k > 1:
        return (
            f"There are {k} microbatches: do the gradients of all of them arrive? zero_grad belongs "
            "before the loop, the average after it."
        )
    return "Every rank ends with the mean over the samples of all ranks." if problem else ""


def look_at_local(case: Case, run: Run) -> str:
    """Say what local SGD mostly gets wrong."""
    if wrote := look_at_the_write(run):
        return wrote
    if run.failure is not None or case.expected is None:
        return ""
    every: int = case.inputs[0][3]
    problem = first_problem(case, run)
    x, _, batch_size = case.inputs[0][:3]
    steps = len(x) // batch_size
    one = case.expected[0].at_the_end
    if problem.startswith("after step 1 ") and every > 1:
        return (
            "The first step is one rank's own affair: no gradient is averaged before it, and its "
            f"weights come together only after step {every}."
        )
    if sum(e.nbytes for e in run.trace.of(0)) > steps // every * one.numel() * one.element_size():
        return (
            f"Count the steps from 1: of {steps} steps the ranks meet after {every}, {2 * every}, ... "
            "and at no other time."
        )
    if problem.startswith("after step 2 ") and every > 1:
        return (
            "Step 1 is right, step 2 not, and no rank has met another yet: are the gradients cleared "
            "before each step?"
        )
    if problem.startswith("optimizer.step() was"):
        return (
            f"{len(x)} samples make len(x) // batch_size = {steps} steps of "
            f"{batch_size}: what is left over makes no step."
        )
    if problem.startswith(f"after step {every + 1} "):
        return (
            f"Up to step {every} all is well. Then each parameter becomes the mean of the ranks' "
            "parameters: their sum, divided by the world size."
        )
    if problem.startswith(f"after step {every} "):
        return (
            f"Step {every} itself is still a rank's own, with its own gradient. The weights are "
            "averaged after it."
        )
    if problem.startswith("at the end"):
        return (
            f"Average after every {every}. step and at no other time: steps left over at the end stay "
            "a rank's own, and a last step whose number is a multiple still counts."
        )
    if problem.startswith("after step"):
        return f"Count the steps from 1: the ranks meet after steps {every}, {2 * every}, ..."
    return ""


def look_at_server(case: Case, run: Run) -> str:
    """Say what a parameter server mostly gets wrong."""
    if wrote := look_at_the_write(run):
        return wrote
    if isinstance(run.failure, Deadlock):
        return (
            "Server and worker must tell the same story in the same order: weights out, gradients "
            "in, each step; then the weights once more."
        )
    if run.failure is not None or case.expected is None:
        return ""
    server, *workers = problems(case, run)
    if "optimizer.step() was" in server:
        return "The server steps, once in each step, after all gradients have come."
    worker = next(filter(None, workers), "")
    if "optimizer.step() was" in worker:
        return "A worker does not step: the server does, and sends the new weights."
    if server:
        return _first_step(case, run)
    if "at the end" in worker:
        return "The workers' copies are one step old: the server sends its weights a last time."
    return ""


def _first_step(case: Case, run: Run) -> str:
    assert case.expected is not None
    workers = case.world_size - 1
    wanted, got = case.expected[0].after[0], run.values[0]["weights"][0]
    if isinstance(got, torch.Tensor) and not torch.allclose(got, wanted, atol=1e-6):
        return (
            f"Already the first step differs. The mean is over the workers, {workers} here, as the server "
            "has no samples; each takes batch_size samples of its own x and y, their mean loss, and its "
            "gradient at the server's weights."
        )
    return (
        "The first step is right, a later one not. Three things change with the step: the weights that "
        "the workers use, the samples (from `step * batch_size` on), and the gradients, which start "
        "from nothing on workers and server."
    )
