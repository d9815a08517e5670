"""What exercises of notebook 09 share: replicas in a wrapper, and what torch's own does to them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from helpers.checks.author import *
from helpers.exercises.nb09_ddp_from_the_inside.in_ranks import (
    Route,
    assorted,
    loss_of,
    state,
)
from helpers.exercises.shared.gradients import PARITY, Gradients, total
from helpers.exercises.shared.in_ranks.classifier import flat, grads_of

DDPS_OWN = ("all_gather", "all_reduce", "broadcast")
"""What torch's wrapper calls by itself: it compares shapes and sends rank 0's state."""
BOTH: Route = ("left", "right")
TURNED: Route = ("right", "left")
WRAPPER: tuple[Any, ...] = (
    OnlyCalls(("all_reduce", "broadcast")),
    Travels(
        "broadcast",
        "parameters travel once, buffers before each forward",
        "broadcast bytes",
        "broadcasts",
        "Broadcast the parameters in __init__ only; equal gradients keep them equal.",
    ),
)
ENDINGS: tuple[Any, ...] = (
    Failed(
        "doesn't require grad|does not require",
        "Frozen parameters have no gradient and take no hook: skip them.",
    ),
    Failed(
        "has no attribute 'finish'",
        "The class needs a method finish(): the training loop calls it after backward.",
    ),
    Failed(
        "ambiguous|size of tensor a",
        "`p in some_list` compares tensors element by element. Put parameters into a set or a dict, or "
        "compare with `is`.",
    ),
    Failed(
        "unsupported operand.*NoneType",
        "A parameter that nobody used has no gradient: in finish() go through what hooks have started, not "
        "through all parameters.",
    ),
    Failed(
        "(?s)Invalid function argument.*NoneType",
        "A hook is called with its parameter: use that. A lambda or function made in a loop sees the loop's "
        "last `p`, whose gradient is not there yet.",
    ),
    Failed(
        "'NoneType' object",
        "A gradient is None. Is a bucket started that is not complete? Was the set of what is ready emptied "
        "in finish(), for the next step?",
        when=lambda case, run: any(event.op == "all_reduce" for event in run.trace),
    ),
    Failed("gradient with dtype", "What is reduced and put back has the dtype of the gradients."),
    Failed("cannot assign|before Module.__init__", "Call `super().__init__()` first."),
    Stuck("Every rank must make the same calls in the same order, in __init__ and in every step."),
    Failed(
        "",
        "Calls that met had tensors of different lengths. Do all ranks reduce the same parameters in the "
        "same order?",
        died=True,
    ),
)
_STARTS = "Broadcast the module in __init__, on every rank: `broadcast_module(module)`."
_SUM = "This is the sum over {n} ranks: divide by the world size, in finish()."
_TWICE = "It is divided by the world size twice: divide once, after the wait."
_OWN = (
    "For this parameter the mean never reaches `p.grad`. Does its hook run? Then what is reduced must be "
    "`p.grad` itself, or be copied back into it in finish()."
)
ZEROS = (
    "Some gradients are there on some ranks only, or on none, so that a bucket may never get full. finish() "
    "puts zeros there and starts what is left, in the same order on every rank."
)
_IN_FLIGHT = (
    "While an all_reduce is under way its tensor is gloo's: wait for its own Work first, then divide. Is "
    "what finish() keeps emptied for the next step?"
)
_LATER = (
    "The first step is right, a later one not: what does finish() leave behind? Empty lists and sets, or "
    "what is left of this step is taken for the next one's."
)
_BUFFERS = "forward() broadcasts the buffers from rank 0 before the module runs: leave that in."


def replicas(
    settings: Sequence[tuple[int, bool, bool, bool]],
    rule: tuple[float, float],
    words: Sequence[torch.Tensor],
    routes: Sequence[Sequence[Route]],
) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Train one replica for each rank in one process: what each shows, and its own first gradients."""
    models = [assorted(*each) for each in settings]
    speed = [[torch.zeros_like(p) for p in model.parameters()] for model in models]
    found = [{f"after __init__, {n}": t for n, t in state(model).items()} for model in models]
    first: list[dict[str, Any]] = []
    for step in range(len(words[0])):
        for model in models:
            model.zero_grad()
            for own, of_first in zip(model.buffers(), models[0].buffers(), strict=True):
                own.copy_(of_first)
        for model, mine, route in zip(models, words, routes, strict=True):
            loss_of(model, mine[step], route[step]).backward()
        each = [grads_of(model) for model in models]
        first = first or each
        mean = {
            name: total([one[name] for one in each], [1 / len(each)] * len(each))
            for name in each[0]
        }
        for model, speeds, seen in zip(models, speed, found, strict=True):
            if not step:
                seen |= {f"gradient of {name}": g for name, g in mean.items()}
            for (name, p), v in zip(model.named_parameters(), speeds, strict=True):
                if mean[name] is not None:
                    v.mul_(rule[1]).add_(mean[name])
                    p.data -= rule[0] * v
            seen[f"weights after step {step + 1}"] = flat(model)
    for model, seen in zip(models, found, strict=True):
        seen |= {f"{n} at the end": b.detach().clone() for n, b in model.named_buffers()}
    return found, first


def wrapped(
    draw: Draw, label: str, routes: Sequence[Sequence[Route]], spare: bool, *more: Any
) -> Case:
    """Make a case in which each rank takes its own words along its own routes, one for each step."""
    n, wide, tied, to_none = (
        draw.ranks,
        draw.of(True, False),
        draw.of(True, False),
        draw.of(True, False),
    )
    rule, seeds = (0.5, draw.of(0.0, 0.9)), [draw.whole(0, 9999) for _ in range(n)]
    steps, sets = len(routes[0]), len({tuple(sorted(route)) for mine in routes for route in mine})
    words = [torch.randint(6, (steps, 7), generator=draw.generator()) for _ in range(n)]
    settings = [(seed, tied, spare, wide) for seed in seeds]
    right, own = replicas([settings[0]] * n, rule, words, routes)
    model = assorted(*settings[0])
    trained = {name: p for name, p in model.named_parameters() if p.requires_grad}
    used = [name for name in trained if right[0][f"gradient of {name}"] is not None]
    unused = {f"gradient of {n}": torch.zeros_like(p) for n, p in trained.items() if n not in used}
    right = [{"in flight": "", **one, **unused} for one in right]
    room = (PARITY if wide else 3.0) * largest(*right)
    judge = Gradients(
        right,
        room,
        unused=frozenset(unused),
        advice=lambda name, got: _IN_FLIGHT if name == "in flight" else "",
    )
    names = [f"gradient of {name}" for name in used]

    def other_starts() -> list[Parts]:
        first, *others = replicas(settings, rule, words, routes)[0]
        begin = [{k: v for k, v in one.items() if k.startswith("after")} for one in others]
        return [{name: first[name] for name in names}, *begin]

    def first_wrong(got: Any, rank: int) -> str:
        return judge.first(got, rank)[0]

    def is_own(got: Any, rank: int) -> bool:
        name = first_wrong(got, rank)
        return name in names and same(own[rank][name.removeprefix("gradient of ")], got[name])

    nbytes = [p.nbytes for p in trained.values()][::-1]
    buffers = [b.nbytes for b in model.buffers()]
    return Case(
        f"{steps} steps{label}, {'float64' if wide else 'float32'}, momentum {rule[1]:g}"
        + ", set_to_none=False" * (not to_none),
        [(settings[r], (*rule, 0.0), words[r], routes[r], to_none, *more) for r in range(n)],
        right=judge,
        mistakes=[
            judge.mistake(_STARTS, other_starts),
            judge.times(n, _SUM, *names),
            judge.times(1 / n, _TWICE, *names),
            *([Mistake(is_own, ZEROS)] if more and (spare or sets > 1) else []),
            Mistake(is_own, _OWN),
            Mistake(
                lambda got, rank: first_wrong(got, rank).startswith("gradient of frozen"),
                "A frozen parameter gets no hook and no gradient.",
            ),
            Mistake(
                lambda got, rank: (
                    first_wrong(got, rank) in {f"weights after step {k}" for k in (2, 3)}
                ),
                _LATER,
            ),
            Mistake(lambda got, rank: first_wrong(got, rank).endswith("at the end"), _BUFFERS),
        ],
        facts={
            "steps": steps,
            "sizes": nbytes,
            "bytes": steps * sum(nbytes),
            "calls": steps * len(nbytes),
            "broadcast bytes": sum(t.nbytes for t in state(model).values()) + steps * sum(buffers),
            "broadcasts": len(state(model)) + steps * len(buffers),
            "all used": all(set(route) == {*BOTH} for mine in routes for route in mine)
            and not spare,
            "sets": sets,
            "orders": len({tuple(mine) for mine in routes}),
            "dtype": "float64" if wide else "float32",
        },
    )
