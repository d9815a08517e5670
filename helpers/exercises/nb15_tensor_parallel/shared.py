"""Code for exercises of notebook 15: layers and blocks to cut, rules, and advice."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch

from helpers.checks.author import *

FUNCTIONS = ("CopyToRanks", "SumOverRanks", "GatherTokens", "ScatterSum")
_PARTS_ONLY_ADVICE = (
    "Keep only copies of this rank's parts, made by `.detach().clone()`, and nothing else of the dense "
    "layer. A slice is a view, which keeps the whole weight in memory."
)
_OBSERVATION_ADVICE = {
    "autograd": "autograd can't differentiate plain calls of torch.distributed, so the gradient may "
    "silently be wrong. Communicate inside autograd functions: `SumOverRanks.apply(...)`, "
    "`ScatterSum.apply(...)`. Compute values that need no gradient, such as a maximum, from a detached "
    "tensor.",
    "outside": "Sums that need a gradient should go through `SumOverRanks.apply(...)` or "
    "`ScatterSum.apply(...)`, because autograd doesn't see calls that bypass them (`.data`, `.detach()`, "
    "`no_grad`).",
    "in place": "`all_reduce` writes into its tensor, which autograd may still need. Sum a clone.",
    "held": "One tensor is enough: the one that `gate` and `up` read. Apply the norm to this rank's tokens, "
    "then gather once. A norm of all tokens also keeps its input.",
    "logits": "Work on a copy: `logits - m[:, None]`, not `logits -= ...`.",
    "block": "parallelize_module changes its model in place. Pass it the given model, and return the same "
    "model.",
    "memory": _PARTS_ONLY_ADVICE,
}
"""Advice on a rank's observations, by their names in `in_ranks.py`."""
_PAIR_ADVICE = {
    "CopyToRanks": "Your CopyToRanks is not right yet: `check(ColumnParallelLinear)` shows why.",
    "SumOverRanks": "Your SumOverRanks is not right yet: `check(RowParallelLinear)` shows why.",
}
_PARAMETER_ADVICE = "Make `self.weight` (and `self.bias`, or None) a torch.nn.Parameter."
SAME_SHAPE_ADVICE = (
    "The ranks call one collective with tensors of different sizes. Summed tensors must have the same shape "
    "on all ranks."
)
FAILURE_ADVICE: tuple[Any, ...] = (
    HangAdvice(SAME_SHAPE_ADVICE, ("different_shapes",)),
    HangAdvice(
        "Every rank must make the same calls in the same order, in forward and in backward. No call may "
        "depend on the rank."
    ),
    CrashAdvice(
        "not ({0})|'({0})' (object|and)|and '({0})'".format("|".join(FUNCTIONS)),
        "Calling an autograd function's class creates an object. Use `.apply(...)` to get a tensor.",
    ),
    CrashAdvice("", SAME_SHAPE_ADVICE, applies_if_killed=True),
    CrashAdvice(
        "does not require grad",
        "The output has no graph, so backward cannot begin: something in forward detaches it (detach, "
        "no_grad, a copy into a new tensor).",
    ),
    CrashAdvice(
        "in-place operation",
        "You change a tensor in place that autograd still needs. Work on a copy.",
    ),
)
"""Advice on failed runs, for all exercises."""


def part_advice(name: str, got: Parts) -> str:
    if name in _OBSERVATION_ADVICE:
        return _OBSERVATION_ADVICE[name]
    if name in {"weight", "bias"} and isinstance(got.get(name), str):
        return _PARAMETER_ADVICE
    return _PAIR_ADVICE.get(str(got.get("pair")), "")


LAYER_REFERENCE = Reference(advice=part_advice, margin=1.0, ignore=("pair",))


# --- layers ---------------------------------------------------------------------------------------


def draw_layer(
    draw: Draw, in_features: int, out_features: int
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor | None, torch.Tensor, bool]:
    """Draw a layer's input, weight, bias, output gradient, and whether the input needs a gradient."""
    dtype, batch = draw.dtype(torch.float32, torch.float64), draw.shape(least=1)
    has_bias, trained = draw.of(True, True, False), draw.of(True, True, False)
    x, weight, shift, grad = (
        draw.tensor(shape, dtype, 1 / 14)
        for shape in (
            (*batch, in_features),
            (out_features, in_features),
            (out_features,),
            (*batch, out_features),
        )
    )
    return x, weight, shift if has_bias else None, grad, trained


def layer_label(x: torch.Tensor, weight: torch.Tensor, bias: Any, x_requires_grad: bool) -> str:
    """Return the label of a layer's case."""
    outs, ins = weight.shape
    label = f"{ins} to {outs} features, x of shape {tuple(x.shape)} and {x.dtype}"
    label += "" if bias is not None else ", no bias"
    return label + ("" if x_requires_grad else ", x without gradient")


# --- blocks ---------------------------------------------------------------------------------------


def draw_unequal_counts(draw: Draw, max_count: int) -> list[int]:
    """Draw a count from 1 to `max_count` for each rank, not all equal."""
    counts = [draw.whole(1, max_count) for _ in range(draw.ranks)]
    counts[draw.rank()] = 1 if min(counts) > 1 else max_count
    counts[0] += len(set(counts)) == 1
    return counts


def cut_block(
    draw: Draw,
    x: torch.Tensor,
    weights: Mapping[str, torch.Tensor],
    counts: Sequence[int],
    *args: Any,
) -> list[tuple[Any, ...]]:
    """Cut a block's last weight by columns and all other weights by rows; return the parts of each rank.

    counts: the number of rows, or columns, of each rank.
    """
    grad, last = torch.randn(x.shape, generator=draw.generator(), dtype=x.dtype), list(weights)[-1]
    cut = {n: w.split(list(counts), int(n == last)) for n, w in weights.items()}
    own = [{"x": x, **{n: cut[n][r].contiguous() for n in weights}} for r in range(len(counts))]
    return [(grad, one, *args) for one in own]


def one_sum_rules() -> tuple[Any, ...]:
    """Return the rules of a block: one sum of x's size in forward, and one such sum in backward."""
    large = "The summed tensor has the shape of x."
    return (
        OnlyCalls(("all_reduce",)),
        Calls(
            phase="forward",
            exactly=1,
            bytes_per_call="bytes",
            missing="The result of `down` or `out` on a rank is only one term of the output's sum.",
            why="Sum only the output, once, at the end.",
            large_advice=large,
        ),
        Calls(
            phase="backward",
            exactly=1,
            bytes_per_call="bytes",
            missing="Each rank computes only one term of x's gradient.",
            why="Sum only x's gradient. Apply CopyToRanks to x once and let every product read the "
            "result: autograd adds up their gradients first. SumOverRanks makes no call in backward.",
            large_advice=large,
        ),
        WaitsForAll(),
    )
