"""14.2 GPipe (10 min, ●●○○○)

- You need two loops over the microbatches. Within each loop, from which rank does a stage receive, what does
  it compute, and to which rank does it send? Which of these steps do the first and the last stage skip?
- First loop, for each i: unless this is stage 0, receive x from rank - 1 into stage.empty(); y =
  stage.forward(i, x); unless this is the last stage, send y to rank + 1. The second loop is its mirror image,
  passing gradients.
- for i in range(microbatches): x = None; if rank > 0: x = stage.empty(); dist.recv(x, rank - 1); y =
  stage.forward(i, x); if rank < world_size - 1: dist.send(y, rank + 1). Then: grad = None; if rank <
  world_size - 1: grad = stage.empty(); dist.recv(grad, rank + 1); back = stage.backward(i, grad); if rank >
  0: dist.send(back, rank - 1).
"""

from collections.abc import Sequence

from helpers.checks.author import *
from helpers.exercises.nb14_pipeline_parallel.in_ranks import run_schedule
from helpers.exercises.nb14_pipeline_parallel.shared import (
    FAILURE_ADVICE,
    SCHEDULE_RULES,
    draw_schedule_case,
)


def case(draw: Draw) -> Case:
    return draw_schedule_case(draw, find_wrong_order)


def find_wrong_order(
    actions: Sequence[str], rank: int, stages: int, microbatches: int
) -> Finding | None:
    """Describe a forward that runs after a backward."""
    begun = ""
    for action in actions:
        begun = begun or action * action.startswith("B")
        if begun and action.startswith("F"):
            return Finding(f"its stage runs {action} after {begun}, but all forwards come first")
    return None


EXERCISE = Exercise(
    case,
    SCHEDULE_RULES,
    failed=FAILURE_ADVICE,
    kind=Kind.MODULE,
    driver=run_schedule,
    reported=("order", "extra", "overwritten"),
    sizes=(2, 3, 4, 5),
)
