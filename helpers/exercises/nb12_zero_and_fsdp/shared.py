"""Code for exercises of notebook 12: shares of flat tensors, and advice on calls that do not match."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch.nn.functional import pad

from helpers.checks.author import *

SAME_CALLS_ADVICE = (
    "Every rank must make the same calls in the same order, without calls on some ranks only."
)
TWO_DTYPES_ADVICE = (
    "You mix tensors of two dtypes. `torch.empty(n)` and `torch.zeros(n)` are float32, but the weights "
    "may have a different dtype. Use a tensor's `new_empty(n)` and `new_zeros(n)`, which keep its dtype."
)
ONE_LENGTH_ADVICE = (
    "The ranks pass tensors of different lengths to one call, but shards must have the same length on all "
    "ranks. Round up, `size = -(-n // world_size)`, and pad with zeros: `torch.nn.functional.pad(flat, "
    "(0, size * world_size - n))`. Don't reduce values of this rank's samples, such as the gradient of "
    "`x`."
)

FAILURE_ADVICE: tuple[CrashAdvice | HangAdvice, ...] = (
    CrashAdvice("dtype|tensor type|scalar type", TWO_DTYPES_ADVICE),
    CrashAdvice(r"size|Check failed|shape|split", ONE_LENGTH_ADVICE, applies_if_killed=True),
    HangAdvice(ONE_LENGTH_ADVICE, ("different_shapes",)),
    HangAdvice(SAME_CALLS_ADVICE),
)
"""Advice for runs in which calls do not match, for all exercises."""


def largest_shard(elements: int, ranks: int) -> int:
    """Return the number of elements of the largest shard if all shards are as equal as possible in size."""
    return -(-elements // ranks)


def flatten_all(tensors: Sequence[torch.Tensor]) -> torch.Tensor:
    """Join tensors, in order."""
    return torch.cat([t.flatten() for t in tensors])


def equal_shards(whole: torch.Tensor, ranks: int) -> list[torch.Tensor]:
    """Cut a tensor into equal flat shards, padded with zeros at the end."""
    size = largest_shard(whole.numel(), ranks)
    return list(pad(whole.flatten(), (0, size * ranks - whole.numel())).split(size))


def draw_shapes(draw: Draw, min_length: int) -> list[tuple[int, ...]]:
    """Draw the shapes of a model's parameters, one of them with most of the elements."""
    shapes = [
        draw.shape((0, 1, 2, 3), least=1) for _ in range(draw.whole(draw.ranks - 1, draw.ranks + 1))
    ]
    large = draw.of((min_length + draw.whole(0, 9),), (draw.whole(5, 9), min_length // 5))
    shapes.insert(draw.whole(0, len(shapes)), large)
    return shapes


def draw_state(
    draw: Draw,
    kinds: Sequence[str],
    widths: Sequence[int],
    dtype: torch.dtype = torch.float64,
    always_bias: bool = True,
) -> dict[str, torch.Tensor]:
    """Draw the parameters of a model. widths: the input's columns, then each Linear's output columns."""
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
