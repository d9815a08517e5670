"""Show pipeline schedules: how stages and microbatches affect the bubble and a stage's memory."""

from __future__ import annotations

from typing import Any

from helpers.explorers.form import Control, choice, steps
from helpers.views.schedule_times import idle_share, max_held, plan_lanes

TITLE = "Pipeline schedules"
CONTROLS: tuple[Control, ...] = (
    choice("kind", "schedule", ("GPipe", "1F1B", "zero bubble")),
    steps("stages", "stages", range(1, 9)),
    steps("microbatches", "microbatches", range(1, 17)),
)
START_SETTING = {"kind": "1F1B", "stages": 4, "microbatches": 8}
SENTENCE_TEMPLATES = {
    "row": "stage {stage} holds {held:microbatch} at most: {order}",
    "says": "{kind}, {stages:stage}, {microbatches:microbatch}: the bubble is {idle:0%} of the time; the "
    "first stage holds {most:microbatch} at most.",
}


def plan(kind: str, stages: int, microbatches: int) -> dict[str, Any]:
    """Return the schedule, in which a backward takes twice as long as a forward, and its bubble."""
    orders = [ORDERS[kind](stage, stages, microbatches) for stage in range(stages)]
    lanes = plan_lanes(orders)
    rows = [
        {
            "stage": stage,
            "held": max_held(order),
            "order": " ".join(order),
            "pieces": [[piece.action, piece.start, piece.end] for piece in lane],
        }
        for stage, (order, lane) in enumerate(zip(orders, lanes, strict=True))
    ]
    return {
        "idle": idle_share([[(piece.start, piece.end) for piece in lane] for lane in lanes]),
        "most": rows[0]["held"],
        "rows": rows,
    }


def gpipe(stage: int, stages: int, microbatches: int) -> list[str]:
    """Return all forwards, then all backwards."""
    return [f"{action}{i}" for action in "FB" for i in range(microbatches)]


def one_f_one_b(stage: int, stages: int, microbatches: int) -> list[str]:
    """Return one forward for each later stage, followed by alternating forwards and backwards."""
    ahead = min(microbatches, stages - stage - 1)
    order = [f"F{i}" for i in range(ahead)]
    for i in range(microbatches - ahead):
        order += [f"F{ahead + i}", f"B{i}"]
    return order + [f"B{i}" for i in range(microbatches - ahead, microbatches)]


def zero_bubble(stage: int, stages: int, microbatches: int) -> list[str]:
    """Return 1F1B with a split backward: I (gradients of inputs) at once, and W (of weights) in idle time.

    This is the schedule ZB-H1 of Qi et al., "Zero Bubble Pipeline Parallelism" (2023). Stage r delays r of
    its W, so that no stage holds more activations than under 1F1B.
    """
    order, waiting = [], 0
    for action in one_f_one_b(stage, stages, microbatches):
        kind, number = action[0], int(action[1:])
        if kind == "F":
            order.append(action)
            continue
        order.append(f"I{number}")
        waiting += 1
        if waiting > stage:
            order.append(f"W{number - waiting + 1}")
            waiting -= 1
    return order + [f"W{i}" for i in range(microbatches - waiting, microbatches)]


ORDERS = {"GPipe": gpipe, "1F1B": one_f_one_b, "zero bubble": zero_bubble}
