"""Run answers of notebook 14 inside the ranks, with a stage and microbatches, and record their actions.

Each function returns plain values by name. A string describes a problem not visible in values; "" means none.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from torch import equal, nn

from helpers.checks.live_tensors import PATIENCE_S, LiveTensorCounter, tensors_held
from helpers.exercises.nb12_zero_and_fsdp.in_ranks.fsdp2 import build_sequential
from helpers.ranks.rank_context import span

MAX_EXTRA_TENSORS = 4
"""Number of tensors in flight that a rank may keep in addition to its stage's saved tensors."""


def mean_square(output: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
    """Return the loss of one microbatch."""
    return ((output - target) ** 2).mean()


def copy_gradients(module: nn.Module) -> dict[str, torch.Tensor | None]:
    """Return {parameter's name: copy of its gradient}."""
    return {
        f"gradient of `{n}`": None if p.grad is None else p.grad.clone()
        for n, p in module.named_parameters()
    }


# --- a model on two ranks -------------------------------------------------------------------------


def run_split_model(
    answer: Callable[..., Any],
    rank: int,
    world_size: int,
    kinds: Sequence[str],
    state: Mapping[str, torch.Tensor],
    cut: int,
    x: torch.Tensor | None,
    y: torch.Tensor | None,
) -> dict[str, Any]:
    """Call the answer to train one step of a model on two ranks; count each layer's runs on this rank."""
    model = build_sequential(kinds, state)
    ran = [0] * len(model)

    def make_counter(index: int) -> Callable[..., None]:
        def hook(*_: object) -> None:
            ran[index] += 1

        return hook

    for index, layer in enumerate(model):
        layer.register_forward_hook(make_counter(index))
    loss = answer(rank, model, cut, x, y)
    graph = isinstance(loss, torch.Tensor) and loss.requires_grad
    found = {f"times that layer {index} ran": times for index, times in enumerate(ran)}
    own = {"loss": loss.detach() if isinstance(loss, torch.Tensor) else loss}
    return {
        **found,
        **copy_gradients(model),
        **own,
        "graph": "its loss is still attached to the graph" if graph else "",
    }


# --- stages ---------------------------------------------------------------------------------------


class StageMisused(RuntimeError):
    """The answer called a stage in a way that is not possible at this point."""


class WatchedStage:
    """Runs a microbatch forward or backward. Its saved tensors count as retained until the backward.

    This class has the same three methods as the notebook's class `Stage`.
    """

    def __init__(
        self,
        rank: int,
        world_size: int,
        module: nn.Module,
        data: Sequence[torch.Tensor],
        template: torch.Tensor,
        microbatches: int,
        counter: LiveTensorCounter,
    ) -> None:
        """Store the data: microbatches on the first stage, targets on the last, and nothing on the others."""
        self._counter, self._extra = counter, 0
        self._rank, self._last, self._module = rank, world_size - 1, module
        self._data, self._microbatches = data, microbatches
        self._template = template
        self._saved: dict[int, tuple[torch.Tensor, ...]] = {}
        self._actions: list[str] = []
        self._received_activations: dict[int, torch.Tensor] = {}
        self._received_gradients: dict[int, torch.Tensor] = {}
        self._overwritten: list[int] = []

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)  # looked up by Python
        raise StageMisused(
            f"a stage has no {name!r} here: use stage.forward(i, x), stage.backward(i, grad) and "
            "stage.empty()."
        )

    def _count_extra(self, grad: torch.Tensor | None) -> None:
        """Count tensors of a message's size, except tensors saved by the stage or received by this call."""
        size, owned = (
            self._template.nbytes,
            [*self._received_activations.values(), *self._received_gradients.values()],
        )
        owned += [t for saved in self._saved.values() for t in saved]
        owned += [t for p in self._module.parameters() for t in (p, p.grad) if t is not None]
        sizes = self._counter.count_until(
            lambda sizes: sizes.count(size) <= MAX_EXTRA_TENSORS,
            *(*owned, grad, self._template),
            patience_s=0 if self._extra > MAX_EXTRA_TENSORS else PATIENCE_S,
        )
        self._extra = max(self._extra, sizes.count(size))

    def empty(self) -> torch.Tensor:
        """Return a new tensor with the shape and dtype of the messages between stages."""
        return torch.full_like(self._template, float("nan"))

    def forward(self, i: int, x: torch.Tensor | None = None) -> torch.Tensor:
        """Run microbatch i forward. x: the tensor sent by the previous stage, or None on the first stage."""
        self._record_action("F", i)
        if self._rank == 0 and x is not None:
            raise StageMisused(
                "the first stage already has its inputs: call stage.forward(i) without x."
            )
        given = self._data[i] if self._rank == 0 else self._check_message(x, "activation", i)
        taken = given.detach().clone().requires_grad_()
        self._received_activations[i] = given.detach().clone()
        with span(f"F{i}"):
            y: torch.Tensor = self._module(taken)
            if self._rank == self._last:
                y = mean_square(y, self._data[i]) / self._microbatches
        self._saved[i] = given.detach(), taken, y
        return y.detach()

    def backward(self, i: int, grad: torch.Tensor | None = None) -> torch.Tensor | None:
        """Run microbatch i backward. grad: the tensor sent by the next stage, or None on the last stage."""
        self._record_action("B", i)
        if i not in self._saved:
            raise StageMisused(f"stage {self._rank} has not run microbatch {i} forward yet.")
        if self._rank == self._last and grad is not None:
            raise StageMisused(
                "the last stage begins with its loss: call stage.backward(i) without grad."
            )
        if self._rank < self._last:
            grad = self._check_message(grad, "gradient", i)
            self._received_gradients[i] = grad.clone()
        if (
            self._microbatches > MAX_EXTRA_TENSORS
        ):  # with fewer microbatches, the count would prove nothing
            self._count_extra(grad)
        given, taken, y = self._saved.pop(i)
        if not equal(given, self._received_activations[i]):
            self._overwritten.append(i)
        with span(f"B{i}"):
            y.backward(grad)
        return None if self._rank == 0 else taken.grad

    def _record_action(self, kind: str, i: int) -> None:
        word = "forward" if kind == "F" else "backward"
        if type(i) is not int or not 0 <= i < self._microbatches:
            raise StageMisused(
                f"stage.{word}() was called with microbatch {i!r}, but microbatches are numbered "
                f"from 0 to {self._microbatches - 1}."
            )
        if f"{kind}{i}" in self._actions:
            raise StageMisused(f"stage {self._rank} runs microbatch {i} {word} a second time.")
        if kind == "F" or i in self._saved:
            self._actions.append(f"{kind}{i}")

    def _check_message(self, given: Any, what: str, i: int) -> torch.Tensor:
        source = self._rank - 1 if what == "activation" else self._rank + 1
        if not isinstance(given, torch.Tensor):
            raise StageMisused(
                f"stage {self._rank} gets a {type(given).__name__} as the {what} of microbatch {i}: "
                f"receive the {what} from rank {source} into stage.empty(), and pass this tensor."
            )
        if given.shape != self._template.shape or given.dtype != self._template.dtype:
            raise StageMisused(
                f"stage {self._rank} gets a {what} of shape {tuple(given.shape)} and dtype "
                f"{given.dtype}: receive it into stage.empty()."
            )
        return given

    def _report(self) -> dict[str, Any]:
        """Return the answer's actions as plain values. Only the check calls this."""
        lost = f"the activation of microbatch {self._overwritten[0]}" if self._overwritten else ""
        return {
            "order": list(self._actions),
            "extra": self._extra,
            **{f"activation of microbatch {i}": x for i, x in self._received_activations.items()},
            **{
                f"gradient received for microbatch {i}": x
                for i, x in self._received_gradients.items()
            },
            "overwritten": lost and f"{lost} was overwritten before its backward",
            **copy_gradients(self._module),
        }


def run_schedule(
    answer: Callable[..., Any],
    rank: int,
    world_size: int,
    kinds: Sequence[str],
    state: Mapping[str, torch.Tensor],
    data: Sequence[torch.Tensor],
    template: torch.Tensor,
    microbatches: int,
) -> dict[str, Any]:
    """Call the answer to run all microbatches through this rank's stage, forward and backward."""
    module = build_sequential(kinds, state)
    with tensors_held() as held:
        stage = WatchedStage(rank, world_size, module, data, template, microbatches, held)
        answer(rank, world_size, stage, microbatches)
    return stage._report()


def run_torch_schedule(
    answer: Callable[..., Any],
    rank: int,
    world_size: int,
    kinds: Sequence[str],
    state: Mapping[str, torch.Tensor],
    x: torch.Tensor | None,
    y: torch.Tensor | None,
    microbatches: int,
) -> dict[str, Any]:
    """Call the answer to run one step of torch's pipeline; also return the schedule that it used."""
    from torch.distributed.pipelining import schedules

    module = build_sequential(kinds, state)
    steps: list[str] = []
    real = schedules.PipelineScheduleSingle.step

    def step(schedule: Any, *args: Any, **kwargs: Any) -> Any:
        steps.append(type(schedule).__name__)
        return real(schedule, *args, **kwargs)

    schedules.PipelineScheduleSingle.step = step  # type: ignore[method-assign, assignment]
    try:
        losses = answer(rank, world_size, module, microbatches, mean_square, x, y)
    finally:
        schedules.PipelineScheduleSingle.step = real  # type: ignore[method-assign]
    if isinstance(losses, torch.Tensor) and losses.dim() == 1:
        losses = list(losses)
    if isinstance(losses, (list, tuple)):
        losses = [v.detach().clone() if isinstance(v, torch.Tensor) else v for v in losses]
    return {"steps": " and ".join(steps) or "none", **copy_gradients(module), "losses": losses}
