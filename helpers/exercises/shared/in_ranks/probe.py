"""Run an answer forward and backward in named spans, and return the outputs and gradients by name."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import torch
from torch import equal, nn

from helpers.ranks.rank_context import span


def run_forward_and_backward(
    call: Callable[..., Any],
    leaves: Mapping[str, torch.Tensor],
    grads: Mapping[str, torch.Tensor | None],
    outputs: Sequence[str] = (),
    *,
    wanted: str = "a tensor",
    kept: str = "",
    unused: bool = False,
    may_have_no_graph: bool = False,
) -> dict[str, Any] | None:
    """Call `call` with copies of the leaves, run backward, and return the outputs and the leaves' gradients.

    Args:
        call: A function called as `call(*leaves)`. If it returns None, so does `run_forward_and_backward`.
        leaves: {name: input}. Inputs of a floating dtype require a gradient.
        grads: The gradient of each output at which backward begins; None for a loss.
        outputs: The names of all outputs, if `grads` does not name all.
        wanted: A description of the required result of the call.
        kept: The name of a leaf that must not change; "result" in the returned values reports a change.
        unused: Whether the output does not depend on the leaves, so that a gradient may be None or zeros.
        may_have_no_graph: Whether to leave an output without a graph out of backward. Otherwise torch raises
            an error.
    """
    outputs = outputs or tuple(grads)
    own = {n: x.clone().requires_grad_(x.is_floating_point()) for n, x in leaves.items()}
    with span("forward"):
        got = call(*own.values())
    if got is None:
        return None
    several = isinstance(got, tuple) and len(outputs) > 1
    parts = dict(zip(outputs, got if several else (got,), strict=False))
    is_wanted = len(got) == len(outputs) if several else len(outputs) == 1
    if not is_wanted or not all(isinstance(parts[n], torch.Tensor) for n in grads):
        said = f"your function returned a {type(got).__name__}, not {wanted}"
        if several and is_wanted:
            part = next(n for n in grads if not isinstance(parts[n], torch.Tensor))
            said = f"`{part}` is a {type(parts[part]).__name__}, not a tensor"
        return {"result": said} | dict.fromkeys(outputs, said)
    found = {n: copy_of(v) if isinstance(v, torch.Tensor) else v for n, v in parts.items()}
    begin = [
        (parts[n], grad)
        for n, grad in grads.items()
        if (not parts[n].dim() if grad is None else parts[n].shape == grad.shape)
        and (parts[n].requires_grad or not may_have_no_graph)
    ]
    if begin and any(x.requires_grad for x in own.values()):
        with span("backward"):
            torch.autograd.backward([x for x, _ in begin], [grad for _, grad in begin])
    same = not kept or equal(own[kept].detach(), leaves[kept])
    return {
        "result": "" if same else f"your function has changed its argument `{kept}`",
        **found,
        **{f"gradient of {n}": grad_of(x, unused) for n, x in own.items()},
    }


def copy_of(value: Any) -> torch.Tensor | None:
    """Return a copy of a tensor, and None for anything else."""
    return value.detach().clone() if isinstance(value, torch.Tensor) else None


def grad_of(leaf: Any, unused: bool = False) -> torch.Tensor | None:
    """Copy a gradient. unused: whether the leaf was not used, so that zeros count as None."""
    grad = copy_of(getattr(leaf, "grad", None))
    return torch.zeros_like(leaf).detach() if grad is None and unused else grad


def with_grads(
    values: Iterable[torch.Tensor], grads: Iterable[torch.Tensor | None]
) -> list[nn.Parameter]:
    """Return parameters with these gradients, as if backward had just computed them."""
    made = [nn.Parameter(value.clone()) for value in values]
    for p, grad in zip(made, grads, strict=True):
        p.grad = None if grad is None else grad.clone()
    return made
