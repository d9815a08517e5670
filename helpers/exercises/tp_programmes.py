"""What the ranks run around an answer of notebook 13: a layer or block cut over ranks, there and back.

Each gives back plain values by name: the output, gradients, what the parameters hold. The spans
"forward" and "backward" let the rules tell which call belongs to which.
"""

from __future__ import annotations

import contextlib
import sys
import warnings
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import torch
import torch.distributed as dist
from torch import nn

from helpers.checks.held import storage_bytes
from helpers.exercises.tp_models import Block
from helpers.ranks.inside import span

_UNKNOWN_TO_AUTOGRAD = "an autograd kernel was not registered"


def run_layer(
    answer: Callable[..., Any],
    rank: int,
    world_size: int,
    weight: torch.Tensor,
    bias: torch.Tensor | None,
    x: torch.Tensor,
    grad: torch.Tensor,
    trained: bool,
) -> dict[str, Any]:
    """Let the answer cut a dense layer, and run its own part there and back."""
    layer = answer(_dense(weight, bias))
    if not isinstance(layer, nn.Module):
        raise TypeError(f"{type(layer).__name__} is not a torch.nn.Module")
    named = dict(layer.named_parameters())
    held = [*layer.parameters(), *layer.buffers(), *_plain_tensors(layer)]
    x = x.clone().requires_grad_(trained)
    found = there_and_back(lambda: layer(x), grad)
    return {
        **{name: _copy(named.get(name)) for name in ("weight", "bias")},
        "bytes held": storage_bytes(held),
        **found,
        "gradient of the input": _copy(x.grad),
        **{f"gradient of {n}": _grad(named.get(n)) for n in ("weight", "bias")},
        "spoilt": _spoilt(),
    }


def run_block(
    answer: Callable[..., Any],
    rank: int,
    world_size: int,
    grad: torch.Tensor,
    tensors: Mapping[str, torch.Tensor],
    *more: Any,
) -> dict[str, Any]:
    """Call the answer with the input and this rank's parts of the weights, there and back."""
    _lend(answer)
    given = {name: tensor.clone().requires_grad_() for name, tensor in tensors.items()}
    found = there_and_back(lambda: answer(*given.values(), *more), grad)
    return {**found, **{f"gradient of {name}": _grad(tensor) for name, tensor in given.items()}}


def run_loss(
    answer: Callable[..., Any],
    rank: int,
    world_size: int,
    logits: torch.Tensor,
    target: torch.Tensor,
    first: int,
) -> dict[str, Any]:
    """Let the answer compute a loss from this rank's logits, and run backward."""
    _lend(answer)
    logits = logits.clone().requires_grad_()
    before = logits.detach().clone()
    found = there_and_back(lambda: answer(logits, target.clone(), first), None)
    kept = torch.equal(before, logits.detach())
    return {**found, "logits as given": kept, "gradient of logits": _grad(logits)}


def run_parallelized(
    answer: Callable[..., Any],
    rank: int,
    world_size: int,
    seed: int,
    heads: int,
    x: torch.Tensor,
    grad: torch.Tensor,
) -> dict[str, Any]:
    """Let the answer parallelize a block with DTensor; tell what each rank holds and computes."""
    from torch.distributed.device_mesh import init_device_mesh

    model = answer(Block.seeded(seed, x.shape[-1], heads), init_device_mesh("cpu", (world_size,)))
    if not isinstance(model, nn.Module):
        raise TypeError(f"with_dtensor returns {type(model).__name__}, not a torch.nn.Module")
    x = x.clone().requires_grad_()
    shapes = {name: list(_local(p).shape) for name, p in model.named_parameters()}
    found = there_and_back(lambda: _whole(model(x)), grad)
    grads = {
        f"gradient of {name}": None if p.grad is None else _whole(p.grad).detach().clone()
        for name, p in model.named_parameters()
    }
    return {"shapes": shapes, **found, "gradient of the input": _copy(x.grad), **grads}


def there_and_back(forward: Callable[[], Any], grad: torch.Tensor | None) -> dict[str, Any]:
    """Run forward and backward in their spans; give the output and whether autograd warned."""
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        with span("forward"):
            output = forward()
            if isinstance(output, torch.Tensor):
                kept = output.detach().clone()
        if not isinstance(output, torch.Tensor):
            return {"output": None, "kind of output": type(output).__name__}
        if grad is not None and output.shape != grad.shape:
            return {"output": kept}
        with span("backward"):
            output.backward(grad)
    warned = any(_UNKNOWN_TO_AUTOGRAD in str(each.message) for each in said)
    return {"output": kept, "autograd warned": warned}


def _dense(weight: torch.Tensor, bias: torch.Tensor | None) -> nn.Linear:
    dense = nn.Linear(weight.shape[1], weight.shape[0], bias=bias is not None, dtype=weight.dtype)
    with torch.no_grad():
        dense.weight.copy_(weight)
        if bias is not None:
            dense.bias.copy_(bias)
    return dense


def _plain_tensors(layer: nn.Module) -> Iterator[torch.Tensor]:
    return (value for value in vars(layer).values() if isinstance(value, torch.Tensor))


def _copy(tensor: Any) -> torch.Tensor | None:
    return tensor.detach().clone() if isinstance(tensor, torch.Tensor) else None


def _grad(tensor: Any) -> torch.Tensor | None:
    return _copy(getattr(tensor, "grad", None))


def _local(tensor: torch.Tensor) -> torch.Tensor:
    local: torch.Tensor = getattr(tensor, "_local_tensor", tensor)
    return local


def _whole(value: Any) -> Any:
    """Give a DTensor's whole tensor, and wait for one that is still on its way."""
    if hasattr(value, "full_tensor"):
        return value.full_tensor()
    return value + 0 if type(value).__name__ == "AsyncCollectiveTensor" else value


class CopyToRanks(torch.autograd.Function):
    """Hand x on unchanged; add up its gradients over all ranks."""

    @staticmethod
    def forward(ctx: Any, x: torch.Tensor) -> torch.Tensor:
        return x.view_as(x)

    @staticmethod
    def backward(ctx: Any, grad: torch.Tensor) -> torch.Tensor:
        total = grad.clone()
        dist.all_reduce(total)
        return total


class SumOverRanks(torch.autograd.Function):
    """Add up x over all ranks; hand its gradient on unchanged."""

    @staticmethod
    def forward(ctx: Any, x: torch.Tensor) -> torch.Tensor:
        total = x.clone()
        dist.all_reduce(total)
        return total

    @staticmethod
    def backward(ctx: Any, grad: torch.Tensor) -> torch.Tensor:
        return grad


def _spoilt() -> str:
    """Try the learner's functions where autograd needs what they are given once more, as it may.

    Name what one of them wrote into, "" if nothing. Outside of the spans, so that no rule counts it.
    """
    learners = vars(sys.modules["__main__"])
    with contextlib.suppress(RuntimeError, NotImplementedError):  # refused aloud: nothing is spoilt
        if copy := learners.get(CopyToRanks.__name__):
            a, b = (torch.zeros(2, requires_grad=True) for _ in range(2))
            (copy.apply(a) + copy.apply(b)).sum().backward()  # both are handed one gradient
            if a.grad is not None and b.grad is not None and not torch.equal(a.grad, b.grad):
                return "CopyToRanks.backward writes into the gradient that it is given"
        if add := learners.get(SumOverRanks.__name__):
            c = torch.zeros(2, requires_grad=True)
            add.apply(c.exp()).sum().backward()  # exp keeps its result for backward
            if c.grad is not None and not torch.equal(c.grad, torch.ones(2)):
                return "SumOverRanks.forward writes into the tensor that it is given"
    return ""


def _lend(answer: Callable[..., Any]) -> None:
    """Let the answer use right functions where its own CopyToRanks or SumOverRanks is a stub."""
    names: dict[str, Any] = getattr(answer, "__globals__", {})
    for right in (CopyToRanks, SumOverRanks):
        if right.__name__ in names:
            names[right.__name__] = _Lent(names[right.__name__], right)


class _Lent:
    """Applies the learner's own function, or the right one where it is not written yet."""

    def __init__(self, own: Any, right: Any) -> None:
        self._own, self._right = own, right

    def apply(self, *args: Any) -> Any:
        try:
            return self._own.apply(*args)
        except NotImplementedError:
            return self._right.apply(*args)
