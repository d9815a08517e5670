"""Run what a learner wrote forward and backward, and note what no value shows.

The spans "forward" and "backward" show rules which call belongs to which. A text describes what was seen; ""
is right.
"""

from __future__ import annotations

import functools
import sys
import types
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch
import torch.distributed as dist

from helpers.ranks.inside import span

_UNKNOWN_TO_AUTOGRAD = "an autograd kernel was not registered"


def forward_and_backward(
    forward: Callable[[], Any], grad: torch.Tensor | None, calls_without_gradient: int = 0
) -> dict[str, Any] | None:
    """Run forward and backward in their spans; None where forward returned nothing.

    Give the output; whether autograd warned; whether an all_reduce wrote into what autograd keeps; and
    whether one in forward was outside of an autograd function, which `calls_without_gradient` of them may be.
    """
    with (
        _watched_sums(calls_without_gradient) as seen,
        warnings.catch_warnings(record=True) as said,
    ):
        warnings.simplefilter("always")
        with span("forward"):
            output = forward()
            kept = output.detach().clone() if isinstance(output, torch.Tensor) else None
        if output is None:
            return None
        if kept is None:
            return {"autograd": "", **seen, "output": f"a {type(output).__name__}, not a tensor"}
        if grad is None or output.shape == grad.shape:
            with span("backward"):
                output.backward(grad)
    warned = any(_UNKNOWN_TO_AUTOGRAD in str(each.message) for each in said)
    words = "autograd warns that it cannot differentiate a call in forward"
    return {"autograd": words if warned else "", **seen, "output": kept}


@contextmanager
def _watched_sums(allowed: int) -> Iterator[dict[str, str]]:
    group: Any = dist.ProcessGroup
    real, seen, outside = group.allreduce, {"in place": "", "outside": ""}, [0]

    @functools.wraps(real)
    def allreduce(own: Any, tensors: Any, *args: Any, **kwargs: Any) -> Any:
        name, given = _function_around(sys._getframe(1))
        mine = tensors if isinstance(tensors, (list, tuple)) else [tensors]
        if not name:
            outside[0] += 1
            if outside[0] > allowed:
                seen["outside"] = "a call in forward is not inside of an autograd function"
        elif _storages(mine) & _storages(given):
            seen["in place"] = f"{name} sums into the tensor that it was given"
        return real(own, tensors, *args, **kwargs)

    group.allreduce = allreduce
    try:
        yield seen
    finally:
        group.allreduce = real


def _function_around(frame: types.FrameType | None) -> tuple[str, tuple[Any, ...]]:
    """Name the function of autograd in which a frame is, and what that was given; "" if in none."""
    while frame is not None:
        code = frame.f_code
        if code.co_name == "apply" and code.co_filename == torch.autograd.function.__file__:
            known = frame.f_locals
            if "cls" in known:
                return f"{known['cls'].__name__}.forward", known["args"]
            return f"{known['self']._forward_cls.__name__}.backward", known["args"]
        if code is forward_and_backward.__code__:
            backward = "output" in frame.f_locals  # a hook may communicate there
            return ("a hook", ()) if backward else ("", ())
        frame = frame.f_back
    return "", ()


def _storages(values: Any) -> set[int]:
    return {v.untyped_storage().data_ptr() for v in values if isinstance(v, torch.Tensor)}
