"""Run a learner's code forward and backward, and note problems not visible in values.

With the spans "forward" and "backward", rules can assign calls to phases. A string describes a problem; ""
means none.
"""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch
import torch.distributed as dist

from helpers.ranks.rank_context import span

_UNKNOWN_TO_AUTOGRAD = "an autograd kernel was not registered"

RunningFunctions = list[tuple[str, tuple[Any, ...]]]
"""The running functions of autograd, innermost last, each with its name and arguments."""


def forward_and_backward(
    forward: Callable[[], Any], grad: torch.Tensor | None, calls_without_gradient: int = 0
) -> dict[str, Any] | None:
    """Run forward and backward in their spans. Return None if forward returned nothing.

    Otherwise return the output; whether autograd warned; whether an all_reduce wrote into a tensor kept by
    autograd; and whether more than `calls_without_gradient` all_reduces of forward were outside any autograd
    function.
    """
    with (
        _watch_functions() as running,
        _watch_sums(running, calls_without_gradient) as seen,
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
            running.append(("a hook", ()))  # this function may communicate in backward
            with span("backward"):
                output.backward(grad)
    warned = any(_UNKNOWN_TO_AUTOGRAD in str(each.message) for each in said)
    words = "autograd warns that it cannot differentiate a call in forward"
    return {"autograd": words if warned else "", **seen, "output": kept}


@contextmanager
def _watch_sums(running: RunningFunctions, max_outside: int) -> Iterator[dict[str, str]]:
    group: Any = dist.ProcessGroup
    real, seen, outside = group.allreduce, {"in place": "", "outside": ""}, [0]

    @functools.wraps(real)
    def allreduce(own: Any, tensors: Any, *args: Any, **kwargs: Any) -> Any:
        mine = tensors if isinstance(tensors, (list, tuple)) else [tensors]
        if not running:
            outside[0] += 1
            if outside[0] > max_outside:
                seen["outside"] = "a call in forward is outside any autograd function"
        elif _storage_addresses(mine) & _storage_addresses(running[-1][1]):
            seen["in place"] = f"{running[-1][0]} sums into its input tensor"
        return real(own, tensors, *args, **kwargs)

    group.allreduce = allreduce
    try:
        yield seen
    finally:
        group.allreduce = real


@contextmanager
def _watch_functions() -> Iterator[RunningFunctions]:
    """Record which autograd functions are running.

    Since torch 2.14, `apply` is in C++, so the functions are missing from the frames.
    """
    top: Any = torch.autograd.Function
    running: RunningFunctions = []
    plain: list[tuple[type, str, Any]] = []

    def watch(owner: Any) -> None:
        for name in {"forward", "backward"} & vars(owner).keys():
            own = vars(owner)[name]
            plain.append((owner, name, own))
            watched = _record_running(getattr(owner, name), f"{owner.__name__}.{name}", running)
            setattr(
                owner, name, staticmethod(watched) if isinstance(own, staticmethod) else watched
            )
        for each in owner.__subclasses__():
            watch(each)

    def init_subclass(owner: type[Any], /, **kwargs: Any) -> None:
        super(top, owner).__init_subclass__(**kwargs)
        watch(owner)

    for each in top.__subclasses__():
        watch(each)
    top.__init_subclass__ = classmethod(
        init_subclass
    )  # an answer may define functions when it runs
    try:
        yield running
    finally:
        del top.__init_subclass__
        for owner, name, own in plain:
            setattr(owner, name, own)


def _record_running(
    function: Callable[..., Any], name: str, running: RunningFunctions
) -> Callable[..., Any]:
    @functools.wraps(function)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        running.append((name, args))
        try:
            return function(*args, **kwargs)
        finally:
            running.pop()

    return wrapper


def _storage_addresses(values: Any) -> set[int]:
    return {v.untyped_storage().data_ptr() for v in values if isinstance(v, torch.Tensor)}
