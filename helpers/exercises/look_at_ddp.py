"""What is wrong with replicas that notebook 09's ranks gave back, in words.

The objects here are the `expected` values of cases: called with what a rank returned, they give ""
or the first thing that is wrong. `look_at_...` then says where to look first.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import torch

from helpers.exercises.compare import difference
from helpers.exercises.ddp_models import assorted, state
from helpers.exercises.ddp_truth import Replicas
from helpers.exercises.look_at_sgd import PARITY, GradientsAre, apart
from helpers.exercises.model import Case
from helpers.exercises.problems import first_problem, problems
from helpers.ranks.failures import Deadlock, RankDied, RankFailed
from helpers.ranks.run import Run


@dataclass(frozen=True)
class StateIs:
    """What a model must hold after a broadcast: its parameters and buffers by name."""

    wanted: Mapping[str, torch.Tensor]

    def __call__(self, value: Any) -> str:
        if not isinstance(value, dict):
            return "its parameters and buffers did not come back"
        if value.get("same tensors") is not True:
            return "the model has new tensors in the place of its own: an optimizer would miss them"
        if problem := state_problem(self.wanted, value.get("state")):
            return problem
        if value.get("same memory") is not True:
            return "the values are right, but not in the memory that the tensors had"
        if value.get("trained as before") is not True:
            return "requires_grad has changed"
        return ""


def state_problem(wanted: Mapping[str, torch.Tensor], got: Any) -> str:
    """Say which parameter or buffer is not as wanted, or ""."""
    if not isinstance(got, dict) or got.keys() != wanted.keys():
        return "its parameters and buffers did not come back"
    wrong = [name for name in wanted if difference(wanted[name], got[name])]
    return f"{_names(wrong)} {'is' if len(wrong) == 1 else 'are'} not as wanted" if wrong else ""


def _names(names: list[str]) -> str:
    shown = ", ".join(f"`{name}`" for name in names[:4])
    return shown + (f" and {len(names) - 4} more" if len(names) > 4 else "")


@dataclass(frozen=True)
class WrappedIs:
    """What must hold on a rank that trained in a wrapper."""

    start: Mapping[str, torch.Tensor]
    truth: Replicas
    rank: int
    trained: frozenset[str]

    def __call__(self, value: Any) -> str:
        start = value.get("start") if isinstance(value, dict) else None
        if problem := state_problem(self.start, start):
            return f"after __init__, {problem}: rank 0's are wanted"
        check = GradientsAre(self.truth.mean, self.truth.own, self.rank, self.trained)
        if problem := check({"grads": value.get("grads"), "weights kept": True}):
            return f"step 1: {problem}"
        got = value.get("weights")
        if not isinstance(got, list) or len(got) != len(self.truth.after):
            return "its weights did not come back"
        for step, (wanted, mine) in enumerate(zip(self.truth.after, got, strict=True), 1):
            if problem := apart(wanted, mine):
                return f"after step {step} the weights {problem}"
        return self._buffers(value.get("buffers"))

    def _buffers(self, got: Any) -> str:
        wanted = self.truth.buffers[self.rank]
        if not isinstance(got, dict) or got.keys() != wanted.keys():
            return "its buffers did not come back"
        wrong = [name for name in wanted if difference(wanted[name], got[name], PARITY)]
        return f"at the end the buffers {_names(wrong)} are not as DDP leaves them" if wrong else ""


def look_at_broadcast(case: Case, run: Run) -> str:
    """Say what a broadcast of a whole model mostly gets wrong."""
    src = case.inputs[0][0]
    if isinstance(run.failure, Deadlock):
        return "Every rank makes the same calls: on rank src broadcast sends, on the others it receives."
    if run.failure is not None:
        return ""
    problem = first_problem(case, run)
    if "memory" in problem:
        return (
            "`p.data = ...` puts other memory under the old name. Whoever has a view of the first one, as "
            "a bucket of gradients or weights has, misses the new values: receive into it, or `copy_`."
        )
    if "new tensors" in problem or "requires_grad" in problem:
        return "Receive into the tensors that the model has: `dist.broadcast(p.detach(), src)`."
    if "not as wanted" not in problem:
        return ""
    if src and _holds_rank_0s(case, run):
        return f"All ranks hold rank 0's values; the source is `src`, here rank {src}."
    if problems(case, run)[src]:
        return f"Rank {src} is the source: its own values stay as they are."
    wrong = _wrong_names(case, run)
    model = assorted(0, True)
    buffers = {name for name, _ in model.named_buffers()}
    frozen = {name for name, p in model.named_parameters() if not p.requires_grad}
    if wrong == {"scale"}:
        return "`scale` is a buffer that state_dict() leaves out. `module.buffers()` gives all of them."
    if wrong == buffers:
        return "The parameters are right; the buffers, `module.buffers()`, must be equal too."
    if wrong and wrong <= buffers:
        return f"Not all buffers are right: {_names(sorted(wrong))}."
    if frozen and frozen <= wrong and not wrong - frozen - buffers:
        return "Frozen parameters take part in forward like any other: broadcast them too."
    return "After the call every rank holds exactly what rank `src` had, tensor by tensor."


def _wrong_names(case: Case, run: Run) -> set[str]:
    assert case.expected is not None
    found: set[str] = set()
    for wanted, value in zip(case.expected, run.values, strict=True):
        got = value.get("state") if isinstance(value, dict) else None
        if isinstance(got, dict):
            found |= {n for n, t in wanted.wanted.items() if difference(t, got.get(n))}
    return found


def _holds_rank_0s(case: Case, run: Run) -> bool:
    _, seed, double = case.inputs[0]
    first = state(assorted(seed, True, torch.float64 if double else torch.float32))
    return all(not difference(first, value.get("state")) for value in run.values)


def look_at_hooked(case: Case, run: Run) -> str:
    """Say what a wrapper that averages from hooks mostly gets wrong."""
    if run.failure is not None:
        return _look_at_failure(run)
    problem = first_problem(case, run)
    n = case.world_size
    if any("after __init__" in each for each in problems(case, run)):
        return "Broadcast the module in __init__, on every rank: `broadcast_module(module)`."
    if f"is {n:.3g} times" in problem:
        return f"This is the sum over {n} ranks: divide by the world size, in finish()."
    if f"is {1 / n:.3g} times" in problem:
        return "It is divided by the world size twice: divide once, after the wait."
    if "its own, unchanged" in problem:
        return (
            "For this parameter the mean never reaches `p.grad`. Does its hook run? Then what is reduced "
            "must be `p.grad` itself, or be copied back into it in finish()."
        )
    if "is frozen" in problem:
        return "A frozen parameter gets no hook and no gradient."
    if "nobody used it" in problem or "has no gradient here" in problem:
        return (
            "A hook that never ran on any rank leaves nothing to do: reduce what hooks handed over."
        )
    if problem.startswith("step 1"):
        return (
            "Follow one gradient: hook, all_reduce, wait, division, `p.grad`. (What `register_hook` hands "
            "over is not yet in `p.grad`; register_post_accumulate_grad_hook comes after that.)"
        )
    if problem.startswith("after step"):
        return (
            "The first step is right, a later one not: what does finish() leave behind? Empty lists and "
            "sets, or what is left of this step is taken for the next one's."
        )
    if "buffers" in problem:
        return "forward() broadcasts the buffers from rank 0 before the module runs: leave that in."
    return ""


def look_at_buckets(case: Case, run: Run) -> str:
    """Say what a wrapper with buckets mostly gets wrong, else what one without gets wrong."""
    routes = [given[1] for given in case.inputs]
    if len({tuple(sorted(route)) for route in routes}) > 1:
        if run.failure is not None or first_problem(case, run):
            return (
                "Some ranks have no gradient for some parameters, so a bucket may never get full. "
                "finish() puts zeros there and starts what is left, in the same order on every rank."
            )
    elif len(set(routes)) > 1 and (run.failure is not None or first_problem(case, run)):
        return (
            "On rank 1 gradients come in another order. Buckets must leave in one fixed order: bucket 1 "
            "waits until bucket 0 has left, even if it is full earlier."
        )
    return look_at_hooked(case, run)


def _look_at_failure(run: Run) -> str:
    failure = run.failure
    if isinstance(failure, RankFailed):
        text = str(failure.error)
        if "doesn't require grad" in text or "does not require" in text:
            return "Frozen parameters have no gradient and take no hook: skip them."
        if "has no attribute 'finish'" in text:
            return "The class needs a method finish(): the training loop calls it after backward."
        if "ambiguous" in text and "Tensor" in text:
            return (
                "`p in some_list` compares tensors element by element. Put parameters into a set or a "
                "dict, or compare with `is`."
            )
        if "unsupported operand" in text and "NoneType" in text:
            return (
                "A parameter that nobody used has no gradient: in finish() go through what hooks have "
                "started, not through all parameters."
            )
        if "Invalid function argument" in text and "NoneType" in text:
            return (
                "A hook is called with its parameter: use that. A lambda or function made in a loop "
                "sees the loop's last `p`, whose gradient is not there yet."
            )
        if "'NoneType' object" in text and any(event.op == "all_reduce" for event in run.trace):
            return (
                "A gradient is None. Is a bucket started that is not complete? Was the set of what is "
                "ready emptied in finish(), for the next step?"
            )
        if "cannot assign" in text or "before Module.__init__" in text:
            return "Call `super().__init__()` first."
    if isinstance(failure, Deadlock):
        return (
            "Every rank must make the same calls in the same order, in __init__ and in every step."
        )
    if isinstance(failure, RankDied):
        return (
            "Calls that met had tensors of different lengths. Do all ranks reduce the same parameters "
            "in the same order?"
        )
    return ""
