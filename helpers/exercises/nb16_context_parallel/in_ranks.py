"""Run answers of notebook 16 inside the ranks: attention over stretches, forward and backward.

Each function returns plain values by name. The spans "forward" and "backward" show each call's phase.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from helpers.exercises.shared.in_ranks.probe import run_forward_and_backward


def run_merge(
    answer: Callable[..., Any],
    rank: int,
    world_size: int,
    parts: dict[str, torch.Tensor],
    grads: dict[str, torch.Tensor],
) -> dict[str, Any] | None:
    """Merge two parts; run backward from both results."""
    return run_forward_and_backward(
        answer, parts, grads, wanted="a pair of tensors", may_have_no_graph=True
    )


def run_pass_on(
    answer: Any,
    rank: int,
    world_size: int,
    x: torch.Tensor,
    second_x: torch.Tensor,
    grad: torch.Tensor,
    second_grad: torch.Tensor,
) -> dict[str, Any] | None:
    """Call the answer, a function of autograd, to pass two tensors on, as keys and values; run backward."""
    # autograd seldom passes contiguous gradients to backward
    other, second_other = (
        each.transpose(0, -1).contiguous().transpose(0, -1) if each.dim() > 1 else each
        for each in (grad, second_grad)
    )

    def pass_both_on(leaf: torch.Tensor, second_leaf: torch.Tensor) -> Any:
        outputs = answer.apply(leaf), answer.apply(second_leaf)
        # an unfinished forward may return nothing
        return None if all(output is None for output in outputs) else outputs

    return run_forward_and_backward(
        pass_both_on,
        {"x": x, "the second x": second_x},
        {"output": other, "output of a second call": second_other},
    )


def run_attention(
    answer: Callable[..., Any],
    rank: int,
    world_size: int,
    q: torch.Tensor,
    k: torch.Tensor,
    v: torch.Tensor,
    grad: torch.Tensor,
    *args: Any,
) -> dict[str, Any] | None:
    """Call the answer with this rank's queries, keys and values; run backward."""
    leaves = {"q": q, "k": k, "v": v}
    return run_forward_and_backward(lambda *own: answer(*own, *args), leaves, {"output": grad})


def run_packed(
    answer: Callable[..., Any],
    rank: int,
    world_size: int,
    q: torch.Tensor,
    k: torch.Tensor,
    v: torch.Tensor,
    grad: torch.Tensor,
    lengths: list[int],
) -> dict[str, Any] | None:
    """Call the answer on the packed documents; run backward from the output."""

    def attend(*own: torch.Tensor) -> Any:
        got = answer(*own, lengths)
        return tuple(got) if isinstance(got, list) else got

    return run_forward_and_backward(
        attend,
        {"q": q, "k": k, "v": v},
        {"output": grad},
        ("output", "positions", "scores"),
        wanted="(output, positions, number of scores)",
    )
