"""What exercises of notebook 12 share: shares of flat tensors, and what to say of calls that do not fit."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch.nn.functional import pad

from helpers.checks.author import *

SAME_CALLS = "Every rank makes the same calls, in the same order: no call may stand in a branch."
TWO_DTYPES = (
    "Two dtypes meet. The weights need not be float32, and `torch.empty(n)` and `torch.zeros(n)` are: "
    "`new_empty(n)` and `new_zeros(n)` of a tensor take its dtype over."
)
ONE_LENGTH = (
    "Shards must have one length on all ranks. Round the share up, `size = -(-n // world_size)`, and pad "
    "the last one with zeros: `torch.nn.functional.pad(flat, (0, size * world_size - n))`."
)
FLOAT32 = (
    "These are the numbers that float32 gives: keep the dtype of what you are given, all the way."
)

ENDINGS: tuple[Failed | Stuck, ...] = (
    Failed("dtype|tensor type|scalar type", TWO_DTYPES),
    Failed(r"size|Check failed|shape|split", ONE_LENGTH, died=True),
    Stuck(ONE_LENGTH, ("different_shapes",)),
    Stuck(SAME_CALLS),
)
"""What to say of runs in which calls do not fit, whatever the exercise."""


def share(elements: int, ranks: int) -> int:
    """Give the most elements that one of so many equal shards has."""
    return -(-elements // ranks)


def flat(tensors: Sequence[torch.Tensor]) -> torch.Tensor:
    """Join tensors, in order."""
    return torch.cat([t.flatten() for t in tensors])


def shards(whole: torch.Tensor, ranks: int) -> list[torch.Tensor]:
    """Cut a tensor into equal flat shards, padded with zeros at the end."""
    size = share(whole.numel(), ranks)
    return list(pad(whole.flatten(), (0, size * ranks - whole.numel())).split(size))


def mean_of(tensors: Sequence[torch.Tensor], dtype: torch.dtype = torch.float64) -> torch.Tensor:
    """Give the mean of the ranks' tensors, computed in a dtype."""
    return torch.stack([t.to(dtype) for t in tensors]).mean(0)


def unflat(whole: torch.Tensor, like: Sequence[torch.Tensor]) -> list[torch.Tensor]:
    """Cut a flat tensor into tensors of these shapes."""
    parts = whole.split([t.numel() for t in like])
    return [part.view(t.shape) for part, t in zip(parts, like, strict=True)]


def draw_shapes(draw: Draw, least: int) -> list[tuple[int, ...]]:
    """Draw the shapes of a model's parameters, one of them with most of the elements."""
    shapes = [
        draw.shape((0, 1, 2, 3), least=1) for _ in range(draw.whole(draw.ranks - 1, draw.ranks + 1))
    ]
    large = draw.of((least + draw.whole(0, 9),), (draw.whole(5, 9), least // 5))
    shapes.insert(draw.whole(0, len(shapes)), large)
    return shapes


# --- optimizers -----------------------------------------------------------------------------------


def stepped(
    weights: Sequence[torch.Tensor],
    grads: Sequence[Sequence[torch.Tensor]],
    name: str,
    options: Mapping[str, float],
    scale: float = 1.0,
    *,
    forgets: bool = False,
    adds: bool = False,
    dtype: torch.dtype | None = None,
) -> list[list[torch.Tensor]]:
    """Give the weights after each step of one process; by default without any mistake."""
    own = [w.to(dtype or w.dtype, copy=True) for w in weights]
    states: list[dict[str, Any]] = [{} for _ in own]
    sums, after = [torch.zeros_like(w) for w in own], []
    for each in grads:
        for w, g, total, state in zip(own, each, sums, states, strict=True):
            g = g.to(w.dtype) * scale
            if adds:
                g = total.add_(g)
            if forgets:
                state.clear()
            step(w, g, state, name, options)
        after.append([p.to(w.dtype, copy=True) for p, w in zip(own, weights, strict=True)])
    return after


def step(
    w: torch.Tensor,
    g: torch.Tensor,
    state: dict[str, Any],
    name: str,
    options: Mapping[str, float],
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
