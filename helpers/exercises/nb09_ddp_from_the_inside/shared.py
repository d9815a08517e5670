"""Code for exercises of notebook 09: replicas in a wrapper, and the results of torch's wrapper."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from helpers.checks.author import *
from helpers.exercises.nb09_ddp_from_the_inside.in_ranks import (
    SECOND_WRAPPERS,
    TOGETHER,
    Route,
    WrappedTraining,
    build_mixed_model,
    build_second_module,
    copy_state,
)
from helpers.exercises.shared.gradients import PARITY_MARGIN

DDP_COLLECTIVES = ("all_gather", "all_reduce", "broadcast")
"""Collectives that torch's wrapper calls to compare shapes and to send rank 0's state."""
LEFT_RIGHT: Route = ("left", "right")
RIGHT_LEFT: Route = ("right", "left")
WRAPPER_RULES: tuple[Any, ...] = (
    OnlyCalls(("all_reduce", "broadcast")),
    Calls(
        "broadcast",
        most="broadcasts",
        total_bytes="broadcast bytes",
        text="parameters are broadcast once, buffers before each forward",
        why="Broadcast the parameters only in __init__, because equal gradients keep them equal.",
    ),
)
FAILURE_ADVICE: tuple[Any, ...] = (
    CrashAdvice(
        "doesn't require grad|does not require",
        "A frozen parameter has no gradient and can't have a hook, so skip it.",
    ),
    CrashAdvice(
        "has no attribute 'finish'",
        "Write the method finish(): the training loop calls it after backward.",
    ),
    CrashAdvice(
        "ambiguous|size of tensor a",
        "`p in some_list` compares tensors element by element. Use a set or a dict, or compare with `is`.",
    ),
    CrashAdvice(
        "unsupported operand.*NoneType",
        "An unused parameter has no gradient. In finish(), loop only over the calls that the hooks have "
        "started.",
    ),
    CrashAdvice(
        "(?s)Invalid function argument.*NoneType",
        "A gradient passed to all_reduce is None. In a hook, use the parameter passed as its argument, "
        "because a function defined in a loop sees the loop's last `p`.",
    ),
    CrashAdvice(
        "'NoneType' object has no attribute '(wait|result|get_future|is_completed)'",
        "The call returned None instead of a Work, because it has already finished. Pass async_op=True.",
    ),
    CrashAdvice(
        "'NoneType' object has no attribute '(data|flatten|reshape|view|numel|copy_|div_|mul_|shape)'",
        "A gradient is None. Did you start a bucket before it was complete, or are gradients of the last "
        "step still marked as ready?",
        when=lambda case, run: any(event.op == "all_reduce" for event in run.trace),
    ),
    CrashAdvice(
        "gradient with dtype",
        "Reduce the gradients without changing their dtype, and write back means "
        "of the same dtype.",
    ),
    CrashAdvice("cannot assign|before Module.__init__", "Call `super().__init__()` first."),
    HangAdvice(
        "Every rank must make the same calls in the same order, in __init__ and in every step."
    ),
    CrashAdvice(
        "",
        "The ranks passed tensors of different lengths to one call. All ranks must reduce the same "
        "parameters in the same order.",
        applies_if_killed=True,
    ),
)
ZEROS_ADVICE = (
    "Some ranks have no gradient for some parameters, so a bucket may never be complete. In finish(), use "
    "zeros for missing gradients, and start the remaining buckets in the same order on every rank."
)
_IN_FLIGHT_ADVICE = (
    "Don't write to a tensor while its all_reduce is in flight. Wait for its Work first, then "
    "divide."
)


def draw_wrapped_case(
    draw: Draw, label: str, routes: Sequence[Sequence[Route]], spare: bool, *more: Any
) -> Case:
    """Return a case in which each rank trains on different words, and each step has a different route."""
    n, wide, tied = draw.ranks, draw.of(True, False), draw.of(True, False)
    to_none = draw.of(True, False)
    all_alike = all(mine == routes[0] for mine in routes)
    # If ranks use different layers, some buckets start in finish(), so the ranks would start the buckets of
    # two modules in different orders.
    second = draw.of(*SECOND_WRAPPERS, *TOGETHER) if all_alike else draw.of(*SECOND_WRAPPERS)
    rule, seeds = (0.5, draw.of(0.0, 0.9)), [draw.whole(0, 9999) for _ in range(n)]
    steps, sets = len(routes[0]), len({tuple(sorted(route)) for mine in routes for route in mine})
    words = [torch.randint(6, (steps, 7), generator=draw.generator()) for _ in range(n)]
    settings = [(seed, tied, spare, wide) for seed in seeds]
    model = build_mixed_model(*settings[0])
    trained = {name: p for name, p in model.named_parameters() if p.requires_grad}
    # the check compares only the gradients of the first step
    taken = {layer for mine in routes for layer in mine[0]}
    idle = {"left", "right", "spare"} - taken
    unused = frozenset(f"gradient of {n}" for n in trained if n.partition(".")[0] in idle)
    nbytes = [p.nbytes for p in trained.values()][::-1]
    buffers = [b.nbytes for b in model.buffers()]
    second_sizes = [p.nbytes for p in build_second_module(0, wide).parameters()][::-1]
    trains_second = second not in ("none", "idle")
    all_sizes = nbytes + second_sizes * trains_second
    return Case(
        f"{steps} steps{label}"
        + f", second wrapper {second}" * (second != "none")
        + f", {'float64' if wide else 'float32'}, momentum {rule[1]:g}"
        + ", set_to_none=False" * (not to_none),
        [
            (
                WrappedTraining(settings[r], (*rule, 0.0), words[r], routes[r], to_none, second),
                *more,
            )
            for r in range(n)
        ],
        right=Reference(
            None, {"in flight": _IN_FLIGHT_ADVICE}, PARITY_MARGIN if wide else 3.0, unused
        ),
        facts={
            "steps": steps,
            "sizes": nbytes,
            "second sizes": second_sizes if trains_second else [],
            "second": second,
            "bytes": steps * sum(all_sizes),
            "calls": steps * len(all_sizes),
            "broadcast bytes": sum(t.nbytes for t in copy_state(model).values())
            + steps * sum(buffers)
            + (second != "none") * sum(second_sizes),
            "broadcasts": len(copy_state(model))
            + steps * len(buffers)
            + (second != "none") * len(second_sizes),
            "all used": all(set(route) == {*LEFT_RIGHT} for mine in routes for route in mine)
            and not spare,
            "sets": sets,
            "orders": len({tuple(mine) for mine in routes}),
            "dtype": "float64" if wide else "float32",
        },
    )
