"""One stage of a pipeline as notebook 12's checks hand it to an answer: it computes, and looks on.

    answer --forward(i, x), backward(i, grad)--> WatchedStage --> what was done, held, and brought in

The same three methods as the class `Stage` that the notebook writes.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import nn

from helpers.exercises.pipeline_models import WIDTH, gradients, mean_square
from helpers.ranks.inside import span


class StageMisused(RuntimeError):
    """The answer asked the stage for something that this stage cannot do now."""


class WatchedStage:
    """Runs one microbatch forward or backward; what it saves is counted as held until its backward."""

    def __init__(
        self,
        rank: int,
        world_size: int,
        module: nn.Module,
        mine: list[torch.Tensor],
        rows: int,
        microbatches: int,
    ) -> None:
        """mine: the microbatches on the first stage, the targets on the last, else empty."""
        self._rank, self._last, self._module = rank, world_size - 1, module
        self._mine, self._microbatches = mine, microbatches
        self._blank = next(module.parameters()).new_zeros(rows, WIDTH)
        self._saved: dict[int, tuple[torch.Tensor, torch.Tensor]] = {}
        self._done: list[str] = []
        self._most = 0
        self._came: dict[int, torch.Tensor] = {}
        self._back: dict[int, torch.Tensor] = {}
        self._overwritten: list[int] = []

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)  # Python asks for these by itself
        raise StageMisused(
            f"a stage has no {name!r} here: use stage.forward(i, x), stage.backward(i, grad) and "
            "stage.empty()."
        )

    def empty(self) -> torch.Tensor:
        """Give a new tensor of the shape and dtype that travels between stages."""
        return torch.full_like(self._blank, float("nan"))

    def forward(self, i: int, x: torch.Tensor | None = None) -> torch.Tensor:
        """Run microbatch i; x is what came from the stage before, None on the first."""
        self._is_new("F", i)
        if self._rank == 0 and x is not None:
            raise StageMisused("the first stage has its own inputs: call stage.forward(i) there.")
        given = self._mine[i] if self._rank == 0 else self._fits(x, "activation", i)
        taken = given.detach().requires_grad_()
        self._came[i] = taken.detach().clone()
        with span(f"F{i}"):
            y: torch.Tensor = self._module(taken)
            if self._rank == self._last:
                y = mean_square(y, self._mine[i]) / self._microbatches
        self._saved[i] = taken, y
        self._most = max(self._most, len(self._saved))
        return y.detach()

    def backward(self, i: int, grad: torch.Tensor | None = None) -> torch.Tensor | None:
        """Run microbatch i backward; grad is what came from the stage after, None on the last."""
        self._is_new("B", i)
        if i not in self._saved:
            raise StageMisused(f"stage {self._rank} has not run microbatch {i} forward yet.")
        if self._rank == self._last and grad is not None:
            raise StageMisused("the last stage begins from its loss: call stage.backward(i) there.")
        if self._rank < self._last:
            grad = self._fits(grad, "gradient", i)
            self._back[i] = grad.clone()
        taken, y = self._saved.pop(i)
        if not taken.detach().equal(self._came[i]):
            self._overwritten.append(i)
        with span(f"B{i}"):
            y.backward(grad)
        return None if self._rank == 0 else taken.grad

    def _is_new(self, kind: str, i: int) -> None:
        word = "forward" if kind == "F" else "backward"
        if type(i) is not int or not 0 <= i < self._microbatches:
            raise StageMisused(
                f"stage.{word}() is given {i!r} as the number of its microbatch; they are numbered "
                f"from 0 to {self._microbatches - 1}."
            )
        if f"{kind}{i}" in self._done:
            raise StageMisused(f"stage {self._rank} runs microbatch {i} {word} a second time.")
        if kind == "F" or i in self._saved:
            self._done.append(f"{kind}{i}")

    def _fits(self, given: Any, what: str, i: int) -> torch.Tensor:
        source = self._rank - 1 if what == "activation" else self._rank + 1
        if not isinstance(given, torch.Tensor):
            raise StageMisused(
                f"stage {self._rank} is given {type(given).__name__} as the {what} of microbatch {i}: "
                f"receive it from rank {source} into stage.empty(), and pass that tensor."
            )
        if given.shape != self._blank.shape or given.dtype != self._blank.dtype:
            raise StageMisused(
                f"stage {self._rank} is given a {what} of shape {tuple(given.shape)} and dtype "
                f"{given.dtype}: receive it into stage.empty()."
            )
        return given

    def _report(self) -> dict[str, Any]:
        """Give what the answer did, as plain values; the check alone calls it."""
        return {
            "done": list(self._done),
            "most": self._most,
            "came": dict(self._came),
            "back": dict(self._back),
            "overwritten": list(self._overwritten),
            "grads": gradients(self._module),
        }
