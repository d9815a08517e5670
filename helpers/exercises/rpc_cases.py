"""Cases of `rpc_parameter_server`, the weights that it must reach, and what to say of its calls."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import torch

from helpers.exercises.compare import difference
from helpers.exercises.draws import tensor
from helpers.exercises.model import Case
from helpers.ranks.failures import RankFailed
from helpers.ranks.run import Run
from helpers.views.plain import plural
from helpers.views.values import short_value


def rpc_cases(rng: random.Random) -> Iterator[Case]:
    """Draw worlds of one server and one, two or three trainers."""
    for trainers, size, steps, lr, dtype in (
        (2, 3, 3, 0.25, torch.float32),
        (1, 4, 2, 0.5, torch.float64),
        (3, 2, 4, 0.125, torch.float32),
    ):
        weights = tensor(rng, size, dtype=dtype)
        targets = tensor(rng, trainers + 1, size, dtype=dtype)
        yield Case(
            f"a server and {plural(trainers, 'trainer')}, {plural(steps, 'step')}",
            trainers + 1,
            [(weights, targets, steps, lr)] * (trainers + 1),
            judge=Served(weights, targets, steps, lr),
            init=False,
            timeout_s=15.0,
        )


@dataclass(frozen=True)
class Served:
    """What the server has to return, and how often it has to ask."""

    weights: torch.Tensor
    targets: torch.Tensor
    steps: int
    lr: float

    def __call__(self, run: Run) -> str:
        found = run.values[0]
        if not isinstance(found, dict):
            return "the server sent no result"
        asked = found.get("asked")
        counts = asked if isinstance(asked, list) else []
        return self._calls(counts) or _weights_sent(found) or self._values(found) or _order(found)

    def _calls(self, asked: list[Any]) -> str:
        if asked and asked[0]:
            return (
                "`gradient` was called on the server itself; the data is on the trainers. Name a "
                "trainer: rpc.rpc_async(trainer, gradient, args=(w,))"
            )
        for trainer, count in enumerate(asked[1:], 1):
            if count != self.steps:
                return (
                    f"trainer{trainer} was asked {plural(count, 'time')}; once in each of the "
                    f"{plural(self.steps, 'step')} is right"
                )
        return ""

    def _values(self, found: dict[Any, Any]) -> str:
        got, wanted = found.get("weights"), self.after()
        if got is None:
            return "nothing is returned: the weights after the last step are wanted"
        if difference(wanted, got):
            shown = f"{short_value(got, 70)} should be {short_value(wanted, 70)}"
            return f"the weights are not right: {shown}. {self._why(got)}".rstrip()
        if not found.get("kept"):
            return "`weights` itself was changed; make new weights: w = w - lr * mean"
        return ""

    def after(self, *, scale: float = 1.0, stale: bool = False) -> torch.Tensor:
        """Give the weights after all steps, or what a usual mistake makes of them."""
        w = self.weights
        for _ in range(self.steps):
            at = self.weights if stale else w
            w = w - self.lr * scale * (at - self.targets[1:].mean(0))
        return w

    def _why(self, got: Any) -> str:
        trainers = len(self.targets) - 1
        if trainers > 1 and not difference(self.after(scale=trainers), got):
            return f"The gradients are added up; divide by the {trainers} trainers"
        if not difference(self.after(scale=-1), got):
            return "The sign: a step goes against the gradient"
        if self.steps > 1 and not difference(self.after(stale=True), got):
            return "Each step has to send out the weights of the step before, not the first ones"
        if not difference(self.weights, got):
            return "These are the first weights: no step was made"
        return ""


def _weights_sent(found: dict[Any, Any]) -> str:
    if found.get("changed"):
        return (
            "a tensor was changed in place while a call that carries it was still on its way: "
            "`rpc_async` makes no copy. Wait for all answers of the step first, then change it; or "
            "make new weights: w = w - lr * mean"
        )
    if found.get("unlike"):
        return (
            "in one step the trainers were asked at different weights. All get the same w, which "
            "moves once all of them have answered"
        )
    return ""


def _order(found: dict[Any, Any]) -> str:
    if not found.get("alone"):
        return ""
    return (
        "right, but one trainer works while the others wait to be asked: start all the calls of a "
        "step by `rpc_async`, keep the futures, and only then wait for them"
    )


def look_at_rpc(case: Case, run: Run) -> str:
    """Say what an exception on the server mostly comes from."""
    if run.failure is not None and "in init_rpc" in str(run.failure):
        return "RPC is up already: every process has joined before your function is called."
    if not isinstance(run.failure, RankFailed):
        return ""
    message = run.failure.error.message
    if "Future" in message:
        return "`rpc_async` gives a future; the gradient is what its `wait()` returns."
    if "Boolean value of Tensor" in message:
        return "`args` is a tuple: args=(w,), with a comma. `(w)` without it is the tensor itself."
    if "should be callable" in message:
        return (
            "`gradient(w)` calls it here, on the server. Give the function and its arguments apart: "
            "rpc.rpc_async(trainer, gradient, args=(w,))"
        )
    if "missing 1 required positional argument" in message:
        return "The trainer calls `gradient` with what `args` holds: args=(w,)"
    if "already initialized" in message:
        return "RPC is up already: every process has joined before your function is called."
    if "shutdown" in message or "not been initialized" in message:
        return "The check shuts RPC down itself, after your function has returned."
    if "Unknown destination worker" in message:
        return "The names of the processes are in `trainers`, as strings."
    return ""
