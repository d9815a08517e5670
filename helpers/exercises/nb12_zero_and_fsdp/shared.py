"""What exercises of notebook 12 share: shares of flat tensors, and what to say of calls that do not fit."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch.nn.functional import pad

from helpers.checks.author import *

SAME_CALLS = "Every rank must make the same calls in the same order, none on some ranks only."
TWO_DTYPES = (
    "Tensors of two dtypes meet. The weights need not be float32, but `torch.empty(n)` and `torch.zeros(n)` "
    "are: `new_empty(n)` and `new_zeros(n)` of a tensor keep its dtype."
)
ONE_LENGTH = (
    "Tensors of different lengths meet in one call. Shards must be equally long on all ranks: round up, "
    "`size = -(-n // world_size)`, and pad with zeros, "
    "`torch.nn.functional.pad(flat, (0, size * world_size - n))`. "
    "Do not reduce values that belong to this rank's samples alone, such as the gradient of `x`."
)

ENDINGS: tuple[Failed | Stuck, ...] = (
    Failed("dtype|tensor type|scalar type", TWO_DTYPES),
    Failed(r"size|Check failed|shape|split", ONE_LENGTH, died=True),
    Stuck(ONE_LENGTH, ("different_shapes",)),
    Stuck(SAME_CALLS),
)
"""What to say of runs in which calls do not fit, whatever the exercise."""


def share(elements: int, ranks: int) -> int:
    """Give the most elements that one of that many equal shards has."""
    return -(-elements // ranks)


def flat(tensors: Sequence[torch.Tensor]) -> torch.Tensor:
    """Join tensors, in order."""
    return torch.cat([t.flatten() for t in tensors])


def shards(whole: torch.Tensor, ranks: int) -> list[torch.Tensor]:
    """Cut a tensor into equal flat shards, padded with zeros at the end."""
    size = share(whole.numel(), ranks)
    return list(pad(whole.flatten(), (0, size * ranks - whole.numel())).split(size))


def mean_of(tensors: Sequence[torch.Tensor]) -> torch.Tensor:
    """Return the mean of the ranks' tensors, computed in float64."""
    return torch.stack([t.double() for t in tensors]).mean(0)


def draw_shapes(draw: Draw, least: int) -> list[tuple[int, ...]]:
    """Draw the shapes of a model's parameters, one of them with most of the elements."""
    shapes = [
        draw.shape((0, 1, 2, 3), least=1) for _ in range(draw.whole(draw.ranks - 1, draw.ranks + 1))
    ]
    large = draw.of((least + draw.whole(0, 9),), (draw.whole(5, 9), least // 5))
    shapes.insert(draw.whole(0, len(shapes)), large)
    return shapes


def draw_state(
    draw: Draw,
    kinds: Sequence[str],
    widths: Sequence[int],
    dtype: torch.dtype = torch.float64,
    always_bias: bool = True,
) -> dict[str, torch.Tensor]:
    """Draw the parameters of a model; widths: columns that go in, and come out of each Linear."""
    state, at = {}, 0
    for i, kind in enumerate(kinds):
        shapes: dict[str, tuple[int, ...]] = {}
        if kind == "Linear":
            shapes = {"weight": (widths[at + 1], widths[at])}
            at += 1
            if always_bias or draw.of(True, True, False):
                shapes["bias"] = (widths[at],)
        elif kind == "LayerNorm":
            shapes = {"weight": (widths[at],), "bias": (widths[at],)}
        for name, shape in shapes.items():
            drawn = torch.randn(shape, generator=draw.generator(), dtype=torch.float64)
            state[f"{i}.{name}"] = (drawn / 2).to(dtype)
    return state


# --- optimizers -----------------------------------------------------------------------------------


def stepped(
    weights: Sequence[torch.Tensor],
    grads: Sequence[Sequence[torch.Tensor]],
    name: str,
    options: Mapping[str, float],
) -> list[list[torch.Tensor]]:
    """Return the weights after each step of one process."""
    own = [w.clone() for w in weights]
    states: list[dict[str, Any]] = [{} for _ in own]
    after = []
    for each in grads:
        for w, g, state in zip(own, each, states, strict=True):
            step(w, g, state, name, options)
        after.append([w.clone() for w in own])
    return after


def step(
    w: torch.Tensor, g: torch.Tensor, state: dict[str, Any], name: str, options: Mapping[str, float]
) -> None:
    """Step one weight as torch's optimizer does, whose first use would import for a second."""
    given: dict[str, float] = {**_DEFAULTS[name], **options}
    lr, t = given["lr"], state.setdefault("t", 0) + 1
    state["t"] = t
    if name == "SGD":
        if given["momentum"]:
            g = state["m"] = state["m"].mul(given["momentum"]).add(g) if t > 1 else g.clone()
        w.add_(g, alpha=-lr)
        return
    squares = state.setdefault("v", torch.zeros_like(w))
    if name == "Adagrad":
        squares.addcmul_(g, g)
        w.addcdiv_(g, squares.sqrt().add_(given["eps"]), value=-lr)
        return
    w.mul_(1 - lr * given["weight_decay"])
    mean = state.setdefault("m", torch.zeros_like(w)).lerp_(g, 0.1)
    squares.mul_(0.999).addcmul_(g, g, value=1 - 0.999)
    root = squares.sqrt().div_((1 - 0.999**t) ** 0.5).add_(given["eps"])
    w.addcdiv_(mean, root, value=-lr / (1 - 0.9**t))


_DEFAULTS = {
    "SGD": {"lr": 1e-3, "momentum": 0.0},
    "Adagrad": {"lr": 1e-2, "eps": 1e-10},
    "Adam": {"lr": 1e-3, "weight_decay": 0.0, "eps": 1e-8},
    "AdamW": {"lr": 1e-3, "weight_decay": 1e-2, "eps": 1e-8},
}
