"""Compute the times of each stage's microbatches in a pipeline, from a plan or from a trace.

    an order for each rank --planned--> lanes        Trace --measured--> lanes

An action is F0 or B0 (microbatch 0 forward or backward) if rank r has stage r. If ranks have several stages,
actions begin with the stage, as in torch: 5F0 and 5B0. 5I0 and 5W0 are the two halves of a backward: the
gradient of the input, for which the previous stage waits, and the gradient of the weights.

`schedule` draws the lanes. The checks of `one_f_one_b` and `interleaved` also use them.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from helpers.trace.events import Trace

_MS = 1e6
_ACTION_PATTERN = re.compile(r"(\d{0,4})([FBIW])(\d{1,6})")


@dataclass(frozen=True, slots=True)
class Piece:
    """One microbatch in one stage, from start to end. stage: the stage, or "" for the lane's stage.

    kind: "F" for forward, "B" for backward, "I" and "W" for the halves of a backward.
    """

    kind: str
    microbatch: int
    start: float
    end: float
    stage: str = ""

    @property
    def action(self) -> str:
        return f"{self.stage}{self.kind}{self.microbatch}"


Lane = tuple[Piece, ...]


def plan_lanes(orders: Sequence[Sequence[str]], backward: float = 2.0) -> tuple[Lane, ...]:
    """Return lanes with each action's earliest time.

    A forward takes 1, and half a backward takes `backward` / 2. orders[r]: the actions of rank r, such as
    ["F0", "F1", "B0", "B1"]. F needs the F of the previous stage. B and I need the B or I of the next stage,
    and the F of the same stage. W needs the I of the same stage. A transfer takes no time. Raises ValueError
    for an invalid action, and for orders in which every rank waits for another rank.
    """
    wanted = [
        [_parse_action(action, lane) for action in order] for lane, order in enumerate(orders)
    ]
    last = max((stage for order in wanted for _, stage, _, _ in order), default=0)
    lasts = {"F": 1.0, "B": backward, "I": backward / 2, "W": backward / 2}
    ended: dict[tuple[int, str, int], float] = {}
    lanes: list[list[Piece]] = [[] for _ in orders]
    while any(len(lane) < len(order) for lane, order in zip(lanes, wanted, strict=True)):
        moved = False
        for lane, order in zip(lanes, wanted, strict=True):
            while len(lane) < len(order):
                named, stage, kind, number = order[len(lane)]
                ready = _earliest_start(ended, stage, last, kind, number)
                if ready is None:
                    break
                start = max(ready, lane[-1].end if lane else 0.0)
                lane.append(Piece(kind, number, start, start + lasts[kind], named))
                ended[stage, "B" if kind == "I" else kind, number] = lane[-1].end
                moved = True
        if not moved:
            raise ValueError(_raise_if_stuck(lanes, orders))
    return tuple(tuple(lane) for lane in lanes)


def measured_lanes(trace: Trace) -> tuple[Lane, ...]:
    """Return the lanes of a trace's spans F0, B0, F1, ..., in ms since the beginning of the first span."""
    spans = [
        (event, found)
        for event in trace
        if event.op == "span"
        and (found := _ACTION_PATTERN.fullmatch(event.call))
        and event.finished
    ]
    origin = min((event.start_ns for event, _ in spans), default=0)
    return tuple(
        tuple(
            Piece(
                found[2],
                int(found[3]),
                (event.start_ns - origin) / _MS,
                ((event.end_ns or event.start_ns) - origin) / _MS,
                found[1],
            )
            for event, found in spans
            if event.rank == rank
        )
        for rank in range(trace.world_size)
    )


def order_of(lanes: Sequence[Lane]) -> list[list[str]]:
    """Return each stage's actions in order, without times."""
    return [[piece.action for piece in lane] for lane in lanes]


def idle_share(busy: Sequence[Sequence[tuple[float, float]]]) -> float:
    """Return the idle share of all stages' time from the first start to the last end."""
    begins = min((start for stage in busy for start, _ in stage), default=0.0)
    ends = max((end for stage in busy for _, end in stage), default=0.0)
    if ends <= begins:
        return 0.0
    worked = sum(end - start for stage in busy for start, end in stage)
    return 1 - worked / ((ends - begins) * len(busy))


def max_held(order: Sequence[str]) -> int:
    """Return the maximum number of microbatches of a rank's stages that have run forward but not backward."""
    held = most = 0
    for action in order:
        found = _ACTION_PATTERN.fullmatch(action)
        held += {"F": 1, "I": 0}.get(found[2], -1) if found else 0
        most = max(most, held)
    return most


def _parse_action(action: str, lane: int) -> tuple[str, int, str, int]:
    """Return an action's stage (as text and as a number), its kind, and its microbatch."""
    found = _ACTION_PATTERN.fullmatch(action)
    if found is None:
        raise ValueError(
            f"{action!r} is not an action of a stage: write F0 for the forward of microbatch 0, B0 for its "
            "backward; or 5F0, with the stage's number, where a rank has several."
        )
    return found[1], int(found[1] or lane), found[2], int(found[3])


def _earliest_start(
    ended: dict[tuple[int, str, int], float], stage: int, last_stage: int, kind: str, number: int
) -> float | None:
    """Return an action's earliest start, or None if it is not yet known."""
    if kind == "F":
        return 0.0 if stage == 0 else ended.get((stage - 1, "F", number))
    own = ended.get((stage, "B" if kind == "W" else "F", number))
    if kind == "W" or stage == last_stage or own is None:
        return own
    return ended.get((stage + 1, "B", number))


def _raise_if_stuck(lanes: Sequence[Sequence[Piece]], orders: Sequence[Sequence[str]]) -> str:
    waiting = [
        f"{'rank' if order[len(lane)][0].isdigit() else 'stage'} {rank} waits to run {order[len(lane)]}"
        for rank, (lane, order) in enumerate(zip(lanes, orders, strict=True))
        if len(lane) < len(order)
    ]
    return (
        f"these schedules deadlock: {', '.join(waiting)}. Each waits for an action that never runs."
    )
