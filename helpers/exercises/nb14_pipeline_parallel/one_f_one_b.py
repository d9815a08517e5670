"""14.3 1F1B (25 min, ●●●●○)

- Write two helpers, forward(i) and backward(i), including their transfers, which are the same as in your
  GPipe. Only the order of the calls is new.
- ahead = min(world_size - 1 - rank, microbatches). First call forward(0) to forward(ahead - 1). Then for each
  i, call forward(i + ahead) if there is such a microbatch, and then backward(i). Use isend, because neighbors
  send to each other at the same time, but keep at most one Work for each neighbor.
- sends = {}; def start(out, peer): if peer in sends: sends[peer].wait(); sends[peer] = dist.isend(out,
  peer). In forward: start(stage.forward(i, x), rank + 1); backward in the same way, with rank - 1. At the
  end: for work in sends.values(): work.wait().
"""

from collections.abc import Sequence

from helpers.checks.author import *
from helpers.exercises.nb14_pipeline_parallel.in_ranks import MAX_EXTRA_TENSORS, run_schedule
from helpers.exercises.nb14_pipeline_parallel.shared import (
    FAILURE_ADVICE,
    SCHEDULE_RULES,
    draw_schedule_case,
)
from helpers.views.schedule_times import max_held


def case(draw: Draw) -> Case:
    return draw_schedule_case(draw, find_wrong_order, max_extra=MAX_EXTRA_TENSORS)


def one_f_one_b_order(rank: int, stages: int, microbatches: int) -> list[str]:
    """Return a stage's actions under 1F1B, in order (Narayanan et al. 2021, section 2.2)."""
    ahead = min(stages - 1 - rank, microbatches)
    wanted = [f"F{i}" for i in range(ahead)]
    for i in range(microbatches):
        wanted += [f"F{i + ahead}"] * (i + ahead < microbatches) + [f"B{i}"]
    return wanted


def find_wrong_order(
    actions: Sequence[str], rank: int, stages: int, microbatches: int
) -> Finding | None:
    """Return the first deviation of a stage from the order of 1F1B."""
    wanted = one_f_one_b_order(rank, stages, microbatches)
    most, allowed = max_held(actions), max_held(wanted)
    if most > allowed:
        held = plural(most, "microbatch")
        what = f"its stage holds the activations of {held} at once, but 1F1B holds {allowed} here"
        return Finding(what)
    for number, (got, right) in enumerate(zip(actions, wanted, strict=False)):
        if got != right:
            before = f"after {' '.join(wanted[:number])}" if number else "first"
            return Finding(f"{before}, its stage runs {got}, but 1F1B runs {right}")
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
