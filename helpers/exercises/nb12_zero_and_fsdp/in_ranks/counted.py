"""Run answers of 12.1 to 12.3 inside the ranks for a few steps, and count the retained bytes.

Each function returns plain values by name. A string describes a problem not visible in values; "" means none.
"""

from __future__ import annotations

import gc
import sys
from array import array
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import nn

from helpers.checks.live_tensors import PATIENCE_S, LiveTensorCounter, storage_bytes, tensors_held
from helpers.exercises.shared.in_ranks.probe import with_grads

_MAX_UNCOUNTED = 4
"""The length up to which lists of numbers are not counted."""
_MAX_LISTED = 5
_SLACK_BYTES = 64
"""Bytes allowed for a few counters."""
_SHORT_WAIT_S = 0.03
_excess_found: list[bool] = []
"""Not empty if a count was too large even after waiting.

Then later waits are short, because the case will run again in a separate world.
"""


class OptimizerSteps(NamedTuple):
    """Weights, the gradients of each step, and an optimizer of torch.optim with its options.

    keeps_grads: whether to zero and refill gradients instead of setting them to None. max_bytes: the number
    of bytes that is enough for the state, and for all tensors. known_sizes, here and below: {number of bytes:
    name} of tensors such as a whole weight. second: the time at which a second optimizer is created, one of
    `SECOND_OPTIMIZERS`. With a second optimizer, bytes are not counted.
    """

    weights: Sequence[torch.Tensor]
    grads: Sequence[Sequence[torch.Tensor]]
    optimizer: str
    options: Mapping[str, Any]
    keeps_grads: bool
    max_bytes: tuple[int, int]
    known_sizes: Mapping[int, str]
    second: str


SECOND_OPTIMIZERS = ("", "made first", "made last")
"""When a second optimizer, for other weights, is created; "" means never. The older one steps first."""


def run_optimizer(
    answer: Callable[..., Any], rank: int, world_size: int, inputs: OptimizerSteps
) -> dict[str, Any]:
    """Take steps with the answer's optimizer, with equal gradients on all ranks; count its retained bytes."""
    weights, grads, name, options, in_place, max_bytes, known_sizes, second = inputs
    found: dict[str, Any] = {}
    optimizer_class = getattr(torch.optim, name)
    with tensors_held() as held:
        params = [nn.Parameter(w.clone()) for w in weights]
        other_params = [nn.Parameter(1 - w) for w in weights] if second else []
        other: Any = (
            answer(list(other_params), optimizer_class, **options)
            if second == "made first"
            else None
        )
        sharded = answer(list(params), optimizer_class, **options)
        if second == "made last":
            other = answer(list(other_params), optimizer_class, **options)
        after: list[torch.Tensor] = []
        notes = {"state": "", "memory": ""}
        for step, each in enumerate(grads, 1):
            _set_grads(params, each, in_place)
            _set_grads(other_params, [2 * g for g in each], in_place)
            in_order = (other, sharded) if second == "made first" else (sharded, other)
            for optimizer in in_order if second else (sharded,):
                optimizer.step()
            for p in (*params, *other_params):
                if p.grad is not None and in_place:
                    p.grad.zero_()
                else:
                    p.grad = None
            found[f"weights after step {step}"] = own = [p.detach().clone() for p in params]
            if second:
                found[f"weights of the second optimizer after step {step}"] = [
                    p.detach().clone() for p in other_params
                ]
                continue
            after += own
            state = storage_bytes(_states())
            if state > max_bytes[0]:
                size = weights[0].element_size()
                notes["state"] = notes["state"] or (
                    f"the optimizer keeps {state // size:,} elements of state, but this rank's share is "
                    f"{(max_bytes[0] - _SLACK_BYTES) // size:,}"
                )
            if not notes["memory"]:
                others = [*params, *after, *(p.grad for p in params)]
                excess = _describe_excess(held, others, max_bytes[1], known_sizes, sharded)
                notes["memory"] = excess and f"after step() {excess}"
        del sharded, other
    return found | notes


def _set_grads(
    params: Sequence[nn.Parameter], grads: Sequence[torch.Tensor], in_place: bool
) -> None:
    # the second optimizer's parameters may be missing
    for p, g in zip(params, grads, strict=False):
        if p.grad is not None and in_place:
            p.grad.copy_(g)
        else:
            p.grad = g.clone()


def _states() -> list[torch.Tensor]:
    """Return the state tensors, without step counters, of every torch optimizer created in this block."""
    made = [o for o in gc.get_objects() if issubclass(type(o), torch.optim.Optimizer)]
    entries = [value for o in made for own in o.state.values() for value in own.values()]
    return [v for v in entries if isinstance(v, torch.Tensor) and v.dim()]


def run_scatter(
    answer: Callable[..., Any],
    rank: int,
    world_size: int,
    weights: Sequence[torch.Tensor],
    grads: Sequence[torch.Tensor],
    max_bytes: int,
    known_sizes: Mapping[int, str],
) -> dict[str, Any] | None:
    """Call the answer to scatter gradients, and count the retained bytes. max_bytes: the bytes of a shard."""
    with tensors_held() as held:
        params = with_grads(weights, grads)
        shard = answer(list(params))
        if shard is None:
            return None
        left = [i for i, p in enumerate(params) if p.grad is not None]
        is_tensor = isinstance(shard, torch.Tensor)
        whole = storage_bytes([shard]) if is_tensor else 0
        excess = _describe_excess(held, params, max_bytes + _SLACK_BYTES, known_sizes, answer)
    return {
        "shard": shard.detach().clone() if is_tensor else f"a {type(shard).__name__}, not a tensor",
        "weights": [p.detach().clone() for p in params],
        "gradients": f"`params[{left[0]}]` still has its gradient" if left else "",
        "view": f"its shard is a view of {whole:,} bytes, but {max_bytes:,} are enough"
        if whole > max_bytes
        else "",
        "memory": excess,
    }


class LayerTraining(NamedTuple):
    """The weights of a stack of layers. steps: this rank's inputs, and the gradients of the outputs.

    max_bytes: the numbers of bytes that are enough after building the layers, in forward, and in backward.
    """

    weights: Sequence[torch.Tensor]
    steps: Sequence[tuple[torch.Tensor, torch.Tensor]]
    lr: float
    trains_x: bool
    keeps_grads: bool
    max_bytes: tuple[int, int, int]
    known_sizes: Mapping[int, str]


def run_layers(
    answer: Callable[..., Any], rank: int, world_size: int, inputs: LayerTraining
) -> dict[str, Any]:
    """Train a stack of the answer's layers, with tanh and a count of bytes between them."""
    weights, steps, lr, trains_x, in_place, max_bytes, known_sizes = inputs
    found: dict[str, Any] = {"parameters": ""}
    seen = {"built": "", "forward": "", "backward": ""}
    with tensors_held() as held:
        layers = [answer(w.clone()) for w in weights]
        own = [p for layer in layers for p in layer.parameters()]
        found["parameters"] = _check_parameters(layers)
        views = [p for p in own if storage_bytes([p]) > p.numel() * p.element_size()]
        seen["built"] = _describe_excess(held, [], max_bytes[0], known_sizes, answer)
        if views and seen["built"]:
            seen["built"] += "; a parameter is a view"

        def make_memory_check(phase: str, number: int) -> Callable[..., None]:
            def count(*_: object) -> None:
                if seen["forward"] or seen["backward"]:
                    return  # the earliest excess explains the most
                if excess := _describe_excess(
                    held, [], max_bytes[1 + (phase == "backward")], known_sizes, answer
                ):
                    side = "above" if phase == "forward" else "below"
                    seen[phase] = f"{phase}, {side} layer {number}: {excess}"

            return count

        for step, (x, grad) in enumerate(steps, 1):
            start = h = x.clone().requires_grad_(trains_x)
            for number, layer in enumerate(layers):
                if h.requires_grad:
                    h.register_hook(make_memory_check("backward", number))
                h = torch.tanh(layer(h))
                make_memory_check("forward", number)()
            found[f"output of step {step}"] = h.detach().clone()
            h.backward(grad)
            found[f"gradient of x in step {step}"] = (
                None if start.grad is None else start.grad.clone()
            )
            del h, start
            make_memory_check("backward", 0)()
            for p in own:
                if p.grad is not None:
                    p.data.sub_(lr * p.grad)
                    p.grad = p.grad.zero_() if in_place else None
        del own, layers, views
    return found | seen


def _check_parameters(layers: Sequence[nn.Module]) -> str:
    for layer in layers:
        own = list(layer.parameters())
        if not own:
            return "the layer has no Parameter"
        if any(hasattr(p, "_local_tensor") for p in own):
            return "its parameters are DTensors, sharded by torch"
    return ""


def _describe_excess(
    counter: LiveTensorCounter,
    others: Sequence[Any],
    max_bytes: int,
    known_sizes: Mapping[int, str],
    answer: Any,
) -> str:
    """Return a message about the bytes retained beyond `max_bytes`, without `others`, or ""."""
    states = torch.get_rng_state().numel()  # torch's checkpoint keeps one state per layer
    smallest_whole = min(known_sizes, default=None)

    def is_within_limit(sizes: list[int]) -> bool:
        own = [size for size in sizes if size != states]
        whole = smallest_whole is not None and any(size >= smallest_whole for size in own)
        return not whole and sum(own) + _bytes_outside_tensors(answer) <= max_bytes

    patience_s = _SHORT_WAIT_S if _excess_found else PATIENCE_S
    sizes = [
        s
        for s in counter.count_until(is_within_limit, *others, patience_s=patience_s)
        if s != states
    ]
    if is_within_limit(sizes):
        return ""
    hidden = _bytes_outside_tensors(answer)
    _excess_found.append(True)
    shown = ", ".join(f"{size:,}" for size in sizes[:_MAX_LISTED]) + ", ..." * (
        len(sizes) > _MAX_LISTED
    )
    said = [f"tensors of {shown} bytes"] * bool(sizes)
    said += [f"{hidden:,} bytes of numbers in arrays, lists or bytes"] * bool(hidden)
    odd = next(
        (f". {size:,} bytes are {known_sizes[size]}" for size in sizes if size in known_sizes), ""
    )
    return f"{' and '.join(said)} are kept, but {max_bytes:,} bytes in total are enough{odd}"


def _bytes_outside_tensors(answer: Any) -> int:
    """Count the bytes of numbers kept outside of tensors by objects created in this block."""
    found: dict[int, int] = {}
    names = vars(sys.modules["__main__"])
    for one in (*gc.get_objects(), names, getattr(answer, "__dict__", None)):
        for part in gc.get_referents(one):
            if isinstance(part, np.ndarray):
                found[id(part)] = part.nbytes
            elif isinstance(part, (bytes, bytearray, array)) and len(part) > _SLACK_BYTES:
                found[id(part)] = len(part) * getattr(part, "itemsize", 1)
            elif type(part) in {list, tuple} and all(type(v) is float for v in part):
                found[id(part)] = 8 * len(part) * (len(part) > _MAX_UNCOUNTED)
    return sum(found.values())
