"""Run answers of notebook 15, except 15.6, inside the ranks: layers and blocks cut over ranks.

Each function returns plain values by name: the output, gradients, and parameters. A string describes a
problem not visible in values; "" means none.
"""

from __future__ import annotations

import gc
from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch import equal, nn

from helpers.checks.live_tensors import storage_bytes
from helpers.exercises.nb03_nonblocking_p2p.in_ranks import keep_transfers
from helpers.exercises.nb15_tensor_parallel.in_ranks.pair import (
    define_missing_pair,
    find_wrong_function,
)
from helpers.exercises.nb15_tensor_parallel.in_ranks.spans import forward_and_backward
from helpers.exercises.shared.in_ranks.probe import copy_of, grad_of
from helpers.ranks.rank_context import span

MULTIPLY_SPAN = "multiply"
"""The name of a product's span."""
_SLACK_BYTES = 64
"""Bytes that a layer may retain in addition to its parts, for one or two numbers."""

SECOND_LAYERS = ("", "built first", "built last")
"""When a second layer, in use at the same time, is built; "" means never."""


def run_layer(
    answer: Callable[..., Any],
    rank: int,
    world_size: int,
    weight: torch.Tensor,
    bias: torch.Tensor | None,
    x: torch.Tensor,
    grad: torch.Tensor,
    x_requires_grad: bool,
    second: str,
) -> dict[str, Any] | None:
    """Call the answer to split a dense layer, and run this rank's part forward and backward.

    second: when a second layer is built, one of `SECOND_LAYERS`. The second layer runs forward before the
    first layer, and backward after the first layer.
    """
    other_x = x.clone().requires_grad_(x_requires_grad)
    x = x.clone().requires_grad_(x_requires_grad)
    other_dense = _build_dense(weight + 1, None if bias is None else bias - 1)
    other_layer = answer(other_dense) if second == "built first" else None
    gc.collect()
    # exclude everything that exists now, so that `_describe_excess` sees only objects made later
    gc.freeze()
    dense = _build_dense(weight, bias)
    storages = {p.untyped_storage().data_ptr() for p in dense.parameters()}
    layer = answer(dense)
    del dense
    if not isinstance(layer, nn.Module):
        raise TypeError(f"{type(layer).__name__} is not a torch.nn.Module")
    memory = _describe_excess(layer, storages)
    if second == "built last":
        other_layer = answer(other_dense)
    other_output = None if other_layer is None else other_layer(other_x)
    found = forward_and_backward(lambda: layer(x), grad)
    if found is None:
        return None
    names, in_place = ("weight", "bias"), found.pop("in place")
    other_found: dict[str, Any] = {}
    if other_layer is not None:
        other_found["output of the second layer"] = copy_of(other_output)
        is_right_shape = getattr(other_output, "shape", None) == grad.shape
        if isinstance(other_output, torch.Tensor) and is_right_shape and other_output.requires_grad:
            other_output.backward(grad)
        other_found["gradient of the second layer's x"] = copy_of(other_x.grad)
        for name in names:
            own = getattr(other_layer, name, None)
            other_found[f"gradient of the second layer's {name}"] = grad_of(own)
    return {
        **{name: _copy_parameter(layer, name) for name in names},
        "memory": memory,
        **found,
        "gradient of x": copy_of(x.grad),
        **{f"gradient of {name}": grad_of(getattr(layer, name, None)) for name in names},
        **other_found,
        "in place": in_place,
    }


def _build_dense(weight: torch.Tensor, bias: torch.Tensor | None) -> nn.Linear:
    dense = nn.Linear(weight.shape[1], weight.shape[0], bias=bias is not None, dtype=weight.dtype)
    with torch.no_grad():
        dense.weight.copy_(weight)
        if bias is not None:
            dense.bias.copy_(bias)
    return dense


def _describe_excess(layer: nn.Module, storages: set[int]) -> str:
    """Return a message about retained parts of the dense layer beyond a copy of this rank's parts, or ""."""
    own = {n: p for n, p in layer.named_parameters() if n in {"weight", "bias"}}
    for name, parameter in own.items():
        if parameter.untyped_storage().data_ptr() in storages:
            return f"its {name} shares memory with the dense layer's"
    gc.collect()
    held = storage_bytes(t for t in gc.get_objects() if issubclass(type(t), torch.Tensor))
    parts = sum(p.numel() * p.element_size() for p in own.values())
    if held - parts > _SLACK_BYTES:
        return f"it keeps tensors of {held:,} bytes, but its parts have only {parts:,}"
    return ""


def _copy_parameter(layer: nn.Module, name: str) -> Any:
    """Return a copy of a parameter, None if it is None, or a description of any other object."""
    named = dict(layer.named_parameters())
    if name in named:
        return copy_of(named[name])
    missing = (
        f"the layer has no attribute of this name; its parameters are {', '.join(named) or 'none'}"
    )
    value = getattr(layer, name, missing)
    return (
        f"a {type(value).__name__}, not a Parameter" if isinstance(value, torch.Tensor) else value
    )


# --- blocks ---------------------------------------------------------------------------------------


def run_block(
    answer: Callable[..., Any],
    rank: int,
    world_size: int,
    grad: torch.Tensor | None,
    tensors: Mapping[str, torch.Tensor],
    *args: Any,
    calls_without_gradient: int = 0,
) -> dict[str, Any] | None:
    """Call the answer with the input and this rank's parts of the weights, forward and backward."""
    define_missing_pair()
    given = {name: tensor.clone().requires_grad_() for name, tensor in tensors.items()}
    found = forward_and_backward(
        lambda: answer(*given.values(), *args), grad, calls_without_gradient
    )
    if found is None:
        return None
    in_place = found.pop("in place")
    return {
        **found,
        **{f"gradient of {name}": grad_of(tensor) for name, tensor in given.items()},
        "in place": in_place,
        "pair": find_wrong_function(rank, world_size),
    }


def run_loss(
    answer: Callable[..., Any],
    rank: int,
    world_size: int,
    logits: torch.Tensor,
    target: torch.Tensor,
    first_class: int,
) -> dict[str, Any] | None:
    """Call the answer to compute a loss from this rank's logits, and run backward."""
    given: list[torch.Tensor] = []

    def record_logits(own: torch.Tensor, *args: Any) -> Any:
        given.append(own)
        return answer(own, *args)

    tensors, more = {"logits": logits}, (target.clone(), first_class)
    # the largest logit needs no gradient
    found = run_block(
        record_logits, rank, world_size, None, tensors, *more, calls_without_gradient=1
    )
    if found is None:
        return None
    changed = not equal(given[0].detach(), logits)
    return found | {"logits": "the given logits have changed" if changed else ""}


def run_sequence(
    answer: Callable[..., Any],
    rank: int,
    world_size: int,
    grad: torch.Tensor,
    tensors: Mapping[str, torch.Tensor],
    mask: torch.Tensor,
) -> dict[str, Any] | None:
    """Call the answer with this rank's tokens; count tensors of all tokens saved by autograd for backward."""
    kept: dict[int, int] = {}

    def record_saved(tensor: torch.Tensor) -> torch.Tensor:
        # the result of a functional collective wraps its tensor
        plain = getattr(tensor, "elem", tensor)
        address = plain.untyped_storage().data_ptr()
        kept[address] = max(kept.get(address, 0), plain.nbytes)
        return tensor

    def call_with_hooks(*args: torch.Tensor) -> Any:
        with torch.autograd.graph.saved_tensors_hooks(record_saved, lambda tensor: tensor):
            return answer(*args)

    found = run_block(call_with_hooks, rank, world_size, grad, tensors, mask)
    if found is None:
        return None
    # `case` makes sure that no other tensor has this number of bytes
    whole = list(kept.values()).count(world_size * grad.nbytes)
    many = f"autograd keeps {whole} tensors of all ranks' tokens for backward"
    return found | {"held": many if whole > 1 else ""}


def run_product(
    answer: Callable[..., Any], rank: int, world_size: int, x: torch.Tensor, weight: torch.Tensor
) -> Any:
    """Pass the answer a `multiply` that records a span of this name."""

    def multiply(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        with span(MULTIPLY_SPAN):
            return a @ b

    before = x.clone()
    with keep_transfers():
        found = answer(rank, world_size, x, weight, multiply)
    if not equal(x, before):
        raise ValueError("the values of `x` have changed: leave `x` unchanged")
    return found
