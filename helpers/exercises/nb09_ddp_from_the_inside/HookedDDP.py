"""9.2 Average while backward runs (20 min, ●●●○○)

- Two moments matter: when a gradient is ready (the hook), and when all means are needed (finish). What can
  the hook do without making backward wait?
- In __init__: `broadcast_module(module)`, an empty list, and a hook for each parameter with requires_grad.
  The hook starts an all_reduce of `p.grad` with async_op=True and keeps parameter and Work.
- finish(): for p, work in self.started: work.wait(); p.grad /= dist.get_world_size(). Then
  self.started.clear(), or the next step finds old Works.
"""

from helpers.checks.author import *
from helpers.checks.rules_spans import IssuedInside
from helpers.exercises.nb09_ddp_from_the_inside.in_ranks import train_wrapped
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


EXERCISE = Exercise(
    case,
    (
        *WRAPPER_RULES,
        Calls("all_reduce", text="each gradient is sent once a step"),
        IssuedInside("backward"),
        WaitsForAll(),
    ),
    failed=FAILURE_ADVICE,
    kind=Kind.MODULE,
    driver=train_wrapped,
    reported=("in flight",),
    sizes=(1, 2, 3, 4),
)
