"""The two autograd functions used throughout notebook 15, for learners who have not written them yet."""

from __future__ import annotations

import dis
import sys
from types import CodeType
from typing import Any

import torch
import torch.distributed as dist
from torch import equal


class CopyToRanks(torch.autograd.Function):
    """Return x unchanged; sum its gradient over all ranks."""

    @staticmethod
    def forward(ctx: Any, x: torch.Tensor) -> torch.Tensor:
        return x.view_as(x)

    @staticmethod
    def backward(ctx: Any, grad: torch.Tensor) -> torch.Tensor:
        total = grad.clone()
        dist.all_reduce(total)
        return total


class SumOverRanks(torch.autograd.Function):
    """Sum x over all ranks; return its gradient unchanged."""

    @staticmethod
    def forward(ctx: Any, x: torch.Tensor) -> torch.Tensor:
        total = x.clone()
        dist.all_reduce(total)
        return total

    @staticmethod
    def backward(ctx: Any, grad: torch.Tensor) -> torch.Tensor:
        return grad


FUNCTION_PAIR = (CopyToRanks, SumOverRanks)
METHODS = ("forward", "backward")


def define_missing_pair() -> None:
    """Define right functions if the learner's CopyToRanks or SumOverRanks is a stub or missing.

    A stub is replaced as a whole, even if one of its two methods is already written.
    """
    names = vars(sys.modules["__main__"])
    for right in FUNCTION_PAIR:
        own = names.setdefault(right.__name__, right)
        if own is not right and _is_function(own) and _is_a_stub(own):
            names[right.__name__] = right


def find_wrong_function(rank: int, world_size: int) -> str:
    """Return the name of the learner's first wrong function of the two, or "".

    Every rank must call this, because the functions communicate.
    """
    names = vars(sys.modules["__main__"])
    for right in FUNCTION_PAIR:
        own = names.get(right.__name__, right)
        if own is right or not _is_function(own):
            continue
        found, wanted = (_forward_and_backward(each, rank) for each in (own, right))
        if found[1] is None or not all(map(equal, found, wanted)):
            return right.__name__
    return ""


def _is_function(value: Any) -> bool:
    return isinstance(value, type) and issubclass(value, torch.autograd.Function)


def _is_a_stub(own: Any) -> bool:
    """Return whether one of a function's methods only raises an error, as in the notebook's stub."""
    written = [vars(own)[name].__func__.__code__ for name in METHODS if name in vars(own)]
    return any("NotImplementedError" in code.co_names and not _has_return(code) for code in written)


def _has_return(code: CodeType) -> bool:
    return any(each.opname.startswith("RETURN_") for each in dis.get_instructions(code))


def _forward_and_backward(function: Any, rank: int) -> tuple[torch.Tensor, Any]:
    x = torch.ones(2, requires_grad=True)
    y = function.apply(x)
    y.backward(torch.full((2,), rank + 1.0))
    return y.detach(), x.grad
