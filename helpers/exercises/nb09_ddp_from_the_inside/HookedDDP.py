"""9.2 Average while backward runs (20 min, ●●●○○)

- Two moments matter: when a gradient is ready (the hook), and when all means are needed (finish). What can
  the hook do without making backward wait?
- In __init__, call `broadcast_module(module)`, make an empty list, and register a hook on each parameter with
  requires_grad. The hook starts an all_reduce of `p.grad` with async_op=True, and keeps the parameter and the
  Work in the list.
- In finish(): for p, work in self.started: work.wait(); p.grad /= dist.get_world_size(). Then call
  self.started.clear(), because otherwise the next step would find old Works.
"""

from helpers.checks.author import *
from helpers.checks.rules_spans import IssuedInside
from helpers.exercises.nb09_ddp_from_the_inside.in_ranks import (
    HOOKED_TWICE,
    REDUCED_TWICE,
    train_wrapped,
)
from helpers.exercises.nb09_ddp_from_the_inside.shared import (
    FAILURE_ADVICE,
    LEFT_RIGHT,
    RIGHT_LEFT,
    WRAPPER_RULES,
    draw_wrapped_case,
)


def case(draw: Draw) -> Case:
    route, spare = draw.of(LEFT_RIGHT, RIGHT_LEFT, ("left",), ("right",)), draw.of(True, False)
    label = ", a layer that no rank uses" if spare or len(route) == 1 else ""
    return draw_wrapped_case(draw, label, [[route] * draw.of(2, 3)] * draw.ranks, spare)


def _records(name: str, run: Run) -> bool:
    return any(event.call == name for event in run.trace.spans)


EARLY_WRITE = "was changed before wait"
"""Words of the error for writing to a tensor while a call is in flight."""
EARLY_WRITE_ADVICE = (
    CrashAdvice(
        EARLY_WRITE,
        "A gradient is reduced more than once in one backward, because its hook is registered more than "
        "once. Register each hook once, by looping over `module.parameters()` in `__init__`.",
        when=lambda case, run: _records(HOOKED_TWICE, run),
    ),
    CrashAdvice(
        EARLY_WRITE,
        "A gradient is reduced again while its first all_reduce is in flight. Start one all_reduce for "
        "each gradient in each backward.",
        when=lambda case, run: _records(REDUCED_TWICE, run),
    ),
    CrashAdvice(
        EARLY_WRITE,
        "A gradient is changed between its all_reduce and the wait. Wait first, then divide. Also clear "
        "your list of Works in finish(), because a Work of the last step says nothing about this step.",
    ),
)


EXERCISE = Exercise(
    case,
    (
        *WRAPPER_RULES,
        Calls("all_reduce", text="each gradient is sent once a step"),
        IssuedInside("backward"),
        WaitsForAll(),
    ),
    failed=(*EARLY_WRITE_ADVICE, *FAILURE_ADVICE),
    kind=Kind.MODULE,
    driver=train_wrapped,
    reported=("in flight",),
    sizes=(1, 2, 3, 4),
)
