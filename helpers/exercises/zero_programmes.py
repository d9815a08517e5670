"""What the ranks run around an answer of notebook 11: a model, a few steps, and who counts what is held.

Each gives back plain values: weights, gradients, and elements held, counted by `held`.
"""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any

import torch
from torch import nn
from torch.nn.functional import mse_loss

from helpers.checks.held import Held, storage_bytes, tensors_held
from helpers.exercises.sgd_models import backward, classifier, weights

DOUBLE = 8
"""Bytes of an element: all of these models are float64."""


def share(elements: int, ranks: int) -> int:
    """Give the most elements that one of so many equal shards has."""
    return -(-elements // ranks)


def whole_weights(widths: Sequence[int], seed: int) -> Iterator[torch.Tensor]:
    """Draw the weight of each layer, [out, in], in float64: the same for the same seed."""
    generator = torch.Generator().manual_seed(seed)
    for inside, outside in pairwise(widths):
        drawn = torch.randn(outside, inside, generator=generator, dtype=torch.float64)
        yield drawn / inside**0.5


def step_sharded(
    answer: Callable[..., Any],
    rank: int,
    world_size: int,
    batches: Sequence[tuple[torch.Tensor, torch.Tensor]],
    seed: int,
    name: str,
    options: Mapping[str, Any],
    most: int,
) -> dict[str, Any]:
    """Train with the answer as optimizer, all ranks on the same batches, and count what it keeps.

    most, here and below: the elements that are enough.
    """
    model, after = classifier(seed), []
    with tensors_held() as held:
        optimizer = answer(list(model.parameters()), getattr(torch.optim, name), **options)
        for x, y in batches:
            model.zero_grad()
            backward(model, x, y)
            optimizer.step()
            after.append(weights(model))
        model.zero_grad()
        kept = held(*model.parameters(), *after, most=most * DOUBLE)
        sizes = [size // DOUBLE for size in held.sizes]
        state = storage_bytes(_states())
        del optimizer
    return {"weights": after, "kept": kept // DOUBLE, "sizes": sizes, "state": state // DOUBLE}


def _states() -> list[torch.Tensor]:
    """Give the state tensors, step counters left out, of every torch optimizer there is."""
    made = [o for o in gc.get_objects() if issubclass(type(o), torch.optim.Optimizer)]
    entries = [value for o in made for own in o.state.values() for value in own.values()]
    return [v for v in entries if isinstance(v, torch.Tensor) and v.dim()]


def scatter_gradients(
    answer: Callable[..., Any],
    rank: int,
    world_size: int,
    x: torch.Tensor,
    y: torch.Tensor,
    seed: int,
    most: int,
) -> dict[str, Any]:
    """Make the gradients of this rank's samples, let the answer scatter them, count what is left."""
    model = classifier(seed).to(x.dtype)
    backward(model, x, y)
    before = weights(model)
    with tensors_held() as held:
        shard = answer(list(model.parameters()))
        found = shard if isinstance(shard, torch.Tensor) else None
        kept = held(most=most * x.element_size()) // x.element_size()
    return {
        "shard": shard,
        "kept": kept,
        "sizes": [size // x.element_size() for size in held.sizes],
        "whole": storage_bytes([found]) // x.element_size(),
        "left": [name for name, p in model.named_parameters() if p.grad is not None],
        "weights kept": before.equal(weights(model)),
    }


def train_layers(
    answer: Callable[..., Any],
    rank: int,
    world_size: int,
    x: torch.Tensor,
    y: torch.Tensor,
    widths: Sequence[int],
    seed: int,
    lr: float,
    steps: int,
    most: tuple[int, int],
) -> dict[str, Any]:
    """Train a stack of the answer's layers on this rank's samples, counting between the layers.

    most: the elements that are enough in forward, and in backward.
    """
    with tensors_held() as held:
        layers = [answer(weight) for weight in whole_weights(widths, seed)]
        shards = [p for layer in layers for p in layer.parameters()]
        built = held(most=most[0] * DOUBLE) // DOUBLE
        sizes = [size // DOUBLE for size in held.sizes]
        trained = sum(p.numel() for p in shards)
        views = any(storage_bytes([p]) > p.numel() * p.element_size() for p in shards)
        seen = _Stack(layers, held, most)
        optimizer = torch.optim.SGD(shards, lr=lr)
        for _ in range(steps):
            optimizer.zero_grad()
            seen.step(x, y)
            optimizer.step()
        by_torch = any(hasattr(p, "_local_tensor") for p in shards)
        del optimizer, shards, layers
    return {
        "built": built,
        "sizes": sizes,
        "trained": trained,
        "views": views,
        "held": seen.marks,
        "outputs": seen.outputs,
        "x.grad": seen.inputs,
        "squares": seen.squares,
        "by torch": by_torch,
    }


class _Stack:
    """Runs layers with tanh between them, and notes what is held at each boundary."""

    def __init__(self, layers: Sequence[nn.Module], held: Held, most: tuple[int, int]) -> None:
        self.layers, self.held, self.most = layers, held, most
        self.marks: list[tuple[str, int, list[int]]] = []
        self.outputs: list[torch.Tensor] = []
        self.inputs: list[torch.Tensor | None] = []
        self.squares: list[float] = []

    def step(self, x: torch.Tensor, y: torch.Tensor) -> None:
        """Run forward and backward from the mean squared error of this rank's samples."""
        start = h = x.clone().requires_grad_()
        for number, layer in enumerate(self.layers):
            h.register_hook(self._note(f"backward, below layer {number}", self.most[1]))
            h = torch.tanh(layer(h))
            self._note(f"forward, above layer {number}", self.most[0])()
        self.outputs.append(h.detach().clone())
        mse_loss(h, y).backward()
        self.inputs.append(start.grad)
        grads = [p.grad for layer in self.layers for p in layer.parameters()]
        self.squares.append(sum(float((g * g).sum()) for g in grads if g is not None))

    def _note(self, where: str, most: int) -> Callable[..., None]:
        def note(*_: object) -> None:
            count = self.held(most=most * DOUBLE) // DOUBLE
            self.marks.append((where, count, [size // DOUBLE for size in self.held.sizes]))

        return note


def train_with_fsdp2(
    answer: Callable[..., Any],
    rank: int,
    world_size: int,
    x: torch.Tensor,
    y: torch.Tensor,
    steps: int,
    lr: float,
    seed: int,
) -> dict[str, Any]:
    """Let the answer shard and train a model that begins differently on each rank."""
    from torch.distributed.fsdp import FSDPModule
    from torch.distributed.tensor import DTensor

    model = classifier(seed + rank)
    names = [name for name, _ in model.named_parameters()]
    before = {name: p.detach().clone() for name, p in model.named_parameters()}
    returned = answer(rank, world_size, model, x, y, steps, lr)
    own = [p for p in model.parameters() if isinstance(p, DTensor)]
    wrapped = isinstance(returned, dict) and [
        name for name, value in returned.items() if isinstance(value, DTensor)
    ]
    return {
        "weights": {} if wrapped else _plain(returned),
        "wrapped": wrapped or [],
        "sharded": len(own),
        "root": isinstance(model, FSDPModule),
        "elements": storage_bytes(p.to_local() for p in own) // DOUBLE,
        "names": names,
        "before": before,
    }


def _plain(returned: Any) -> Any:
    """Give a dict of tensors without what ties them to autograd; anything else as it is."""
    if not isinstance(returned, dict):
        return returned
    return {k: v.detach() if isinstance(v, torch.Tensor) else v for k, v in returned.items()}
