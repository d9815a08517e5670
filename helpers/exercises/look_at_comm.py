"""What is wrong with notebook 09's switch, graph search and compression, in words."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch

from helpers.exercises.look_at_sgd import GradientsAre
from helpers.exercises.model import Case
from helpers.exercises.problems import first_problem
from helpers.exercises.sgd_models import Grads
from helpers.ranks.failures import Deadlock, RankFailed, RankTimeout
from helpers.ranks.run import Run

_HALF = 4e-3
"""What float16 and a sum of a few may lose, relative to each element and to a thousandth of the largest."""


@dataclass(frozen=True)
class SwitchedAre:
    """Gradients after each step of accumulation, and what the switch must say in unusual places."""

    wanted: tuple[Grads, ...]

    def __call__(self, value: Any) -> str:
        steps = value.get("grads") if isinstance(value, dict) else None
        if not isinstance(steps, list) or len(steps) != len(self.wanted):
            return "its gradients did not come back"
        for number, (wanted, got) in enumerate(zip(self.wanted, steps, strict=True), 1):
            check = GradientsAre(wanted, (), 0, frozenset(wanted))
            if problem := check({"grads": got, "weights kept": True}):
                return f"step {number}: {problem}"
        if value.get("swallowed") is not False:
            return "an exception inside the block does not come out of it"
        if value.get("inner") is not False:
            return "one block within another: inside the inner one DDP synchronises"
        if value.get("nested") is not False:
            return "one block within another: after the inner one, the outer one synchronises again"
        if value.get("behind") is not True:
            return "after two nested blocks, DDP does not synchronise any more"
        if value.get("failed") is not True:
            return "after an exception inside the block, DDP does not synchronise any more"
        return ""


def look_at_switch(case: Case, run: Run) -> str:
    """Say what a context manager for `no_sync` mostly gets wrong."""
    if isinstance(run.failure, RankFailed):
        text = str(run.failure)
        if "context manager" in text:
            return "Keep `@contextmanager` above the function, and `yield` once in it."
        if "does not require grad" in text:
            return "Backward runs inside the block as ever, only without the all_reduce: leave autograd on."
        if "didn't yield" in text:
            return "The function must `yield` once: that is where the block runs."
        return ""
    if run.failure is not None or case.expected is None:
        return ""
    problem = first_problem(case, run)
    if sum(event.op == "all_reduce" for event in run.trace.of(0)) > len(case.inputs[0][0]):
        return (
            "Every backward synchronises, those in the block too: `require_backward_grad_sync` is the "
            "switch, and it must be False while the block runs."
        )
    if "comes out" in problem or "does not come out" in problem:
        return "Do not catch it: with `finally:` instead of `except:` it goes on by itself."
    if "inside the inner one" in problem:
        return "Set the switch to False for the block; do not flip it."
    if "one block within" in problem:
        return "Put back what the switch was before, not True: it may have been False already."
    if "exception" in problem:
        return "Put the old value back in `finally:`, around the `yield`."
    if "step" in problem:
        return (
            "Microbatches inside the block still run backward and add to `p.grad`; the one after it "
            "synchronises. So the switch is off exactly while the block runs."
        )
    return ""


@dataclass(frozen=True)
class UnusedAre:
    """The names that a search of the graph must give."""

    names: tuple[str, ...]

    def __call__(self, value: Any) -> str:
        if not isinstance(value, dict):
            return "nothing came back"
        if value.get("backwards"):
            return "backward ran; look at the graph instead"
        if value.get("gradients left"):
            return "it leaves gradients behind"
        got = value.get("unused")
        if got is None:
            return "it returns nothing: a list of names is wanted"
        if not isinstance(got, list) or not all(isinstance(name, str) for name in got):
            return "a list of names (str) is wanted"
        return self._names(got)

    def _names(self, got: list[str]) -> str:
        if too_many := [name for name in got if name not in self.names]:
            frozen = too_many[0].startswith("frozen")
            why = "is not trained at all" if frozen else "is used: backward reaches it"
            return f"`{too_many[0]}` {why}"
        if missing := [name for name in self.names if name not in got]:
            return f"`{missing[0]}` is missing"
        if list(self.names) != got:
            return "the right names, but each once and in the order of named_parameters()"
        return ""


def look_at_search(case: Case, run: Run) -> str:
    """Say what a search of the graph mostly gets wrong."""
    if isinstance(run.failure, RankTimeout):
        return (
            "The graph joins again and again, so the number of paths doubles at each joint. Keep a set "
            "of the functions that you have seen, and visit each once."
        )
    if isinstance(run.failure, RankFailed):
        text = str(run.failure)
        if "RecursionError" in text:
            return (
                "This graph is deeper than Python's recursion goes: use a list of what is to visit."
            )
        if "next_functions" in text and "NoneType" in text:
            return (
                "`next_functions` has None where an input needs no gradient, and an output without a "
                "graph has None for its grad_fn: skip them."
            )
    if run.failure is not None or case.expected is None:
        return ""
    problem = first_problem(case, run)
    if "backward ran" in problem:
        return "Begin at output.grad_fn and follow next_functions: nothing needs to be computed."
    if "not trained" in problem:
        return "Only parameters with requires_grad=True are meant."
    if "gradients behind" in problem:
        return "Leave `p.grad` as it was: DDP asks before backward has begun."
    if "returns nothing" in problem or "list of names" in problem:
        return "Give the names back by `return`, as a list: `[name for name, p in ...]`."
    return "Reached are those parameters whose AccumulateGrad node (`node.variable`) you come to."


@dataclass(frozen=True)
class CompressedAre:
    """Mean gradients, as far as float16 can tell, after each of two steps."""

    wanted: Grads

    def __call__(self, value: Any) -> str:
        steps: Sequence[Any] = value.get("grads") or () if isinstance(value, dict) else ()
        if len(steps) != 2:
            return "its gradients did not come back"
        for number, got in enumerate(steps, 1):
            for name, wanted in self.wanted.items():
                assert wanted is not None
                if problem := _half_problem(wanted, got.get(name)):
                    return f"step {number}: the gradient of `{name}` {problem}"
        return ""


def _half_problem(wanted: torch.Tensor, got: Any) -> str:
    if not isinstance(got, torch.Tensor) or got.shape != wanted.shape or got.dtype != wanted.dtype:
        return "is not like the parameter"
    if not got.isfinite().all():
        return "holds inf or NaN"
    room = _HALF * float(wanted.abs().max())
    if torch.allclose(got, wanted, rtol=_HALF, atol=room):
        return ""
    size = float((wanted * wanted).sum())
    factor = float((wanted * got).sum()) / size
    if torch.allclose(got, factor * wanted, rtol=2 * _HALF, atol=2 * room * abs(factor)):
        return f"is {factor:.3g} times what it should be"
    return "is wrong"


def look_at_compressed(case: Case, run: Run) -> str:
    """Say what a communication hook that compresses mostly gets wrong."""
    n = case.world_size
    if isinstance(run.failure, Deadlock):
        return "Every rank must hand its bucket in, in the hook."
    if isinstance(run.failure, RankFailed) and "isPyObject" in str(run.failure):
        return (
            "The Work's own future holds a list of tensors, which DDP does not take. Add `.then(...)` "
            "with a function that gives the one tensor."
        )
    if isinstance(run.failure, RankFailed):
        return _look_at_value(str(run.failure))
    if run.failure is not None or case.expected is None:
        return ""
    problem = first_problem(case, run)
    if "inf or NaN" in problem:
        return (
            "float16 ends at 65,504, and the sum over the ranks is larger. Divide by the world size "
            "before you add, and the mean fits."
        )
    if f"is {n:.3g} times" in problem:
        return "With a hook DDP does not divide any more: the hook must return the mean."
    if f"is {1 / n:.3g} times" in problem:
        return "It is divided by the world size twice."
    if problem:
        return "The future must give the mean of the whole bucket, as long as `bucket.buffer()`."
    return ""


def _look_at_value(said: str) -> str:
    """Say what a callback has taken for the tensor."""
    if "not subscriptable" in said and "Future" in said:
        return "The callback is given the future itself: its value is `done.value()`, a list of tensors."
    if "list" in said or "Unable to cast [" in said:
        return (
            "`done.value()` is a list, as a collective can have several tensors. Here it has one: "
            "`done.value()[0]`."
        )
    return ""
