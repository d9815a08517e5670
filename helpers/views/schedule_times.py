"""When each stage of a pipeline runs which microbatch: as planned, and as a trace has it.

    an order for each stage --planned--> lanes        Trace --measured--> lanes

`schedule` draws the lanes; the check of `bubble_fraction` uses `idle_share`.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from helpers.trace.events import Trace

_MS = 1e6
_ACTION = re.compile(r"([FB])(\d{1,6})")


@dataclass(frozen=True, slots=True)
class Piece:
    """One microbatch in one stage: forward ("F") or backward ("B"), from start to end."""

    kind: str
    microbatch: int
    start: float
    end: float

    @property
    def action(self) -> str:
        return f"{self.kind}{self.microbatch}"


Lane = tuple[Piece, ...]


def planned(orders: Sequence[Sequence[str]], backward: float = 2.0) -> tuple[Lane, ...]:
    """Give each action of each stage its earliest time; a forward takes 1, a transfer nothing.

    orders[s]: what stage s does, such as ["F0", "F1", "B0", "B1"]. F needs the F of the stage before,
    B the B of the stage after, and on the last stage its own F. Raises ValueError for an action that
    is none, and for orders in which every stage waits for another one.
    """
    wanted = [[_parsed(action) for action in order] for order in orders]
    ended: dict[tuple[int, str, int], float] = {}
    lanes: list[list[Piece]] = [[] for _ in orders]
    while any(len(lane) < len(order) for lane, order in zip(lanes, wanted, strict=True)):
        moved = False
        for stage, (lane, order) in enumerate(zip(lanes, wanted, strict=True)):
            while len(lane) < len(order):
                kind, number = order[len(lane)]
                ready = _ready(ended, stage, len(orders), kind, number)
                if ready is None:
                    break
                start = max(ready, lane[-1].end if lane else 0.0)
                lane.append(Piece(kind, number, start, start + (1.0 if kind == "F" else backward)))
                ended[stage, kind, number] = lane[-1].end
                moved = True
        if not moved:
            raise ValueError(_stuck(lanes, wanted))
    return tuple(tuple(lane) for lane in lanes)


def measured(trace: Trace) -> tuple[Lane, ...]:
    """Take the spans called F0, B0, F1, ... out of a trace; ms since the first of them began."""
    spans = [
        (event, found)
        for event in trace
        if event.op == "span" and (found := _ACTION.fullmatch(event.call)) and event.finished
    ]
    origin = min((event.start_ns for event, _ in spans), default=0)
    return tuple(
        tuple(
            Piece(
                found[1],
                int(found[2]),
                (event.start_ns - origin) / _MS,
                ((event.end_ns or event.start_ns) - origin) / _MS,
            )
            for event, found in spans
            if event.rank == rank
        )
        for rank in range(trace.world_size)
    )


def order_of(lanes: Sequence[Lane]) -> list[list[str]]:
    """Give what each stage does, in order, without times."""
    return [[piece.action for piece in lane] for lane in lanes]


def idle_share(busy: Sequence[Sequence[tuple[float, float]]]) -> float:
    """Give the share of all stages' time, from the first start to the last end, in which they idle."""
    begins = min((start for stage in busy for start, _ in stage), default=0.0)
    ends = max((end for stage in busy for _, end in stage), default=0.0)
    if ends <= begins:
        return 0.0
    worked = sum(end - start for stage in busy for start, end in stage)
    return 1 - worked / ((ends - begins) * len(busy))


def most_held(order: Sequence[str]) -> int:
    """Count how many microbatches have gone forward and not yet backward, at most, in one stage."""
    held = most = 0
    for action in order:
        held += 1 if action[:1] == "F" else -1
        most = max(most, held)
    return most


def _parsed(action: str) -> tuple[str, int]:
    found = _ACTION.fullmatch(action)
    if found is None:
        raise ValueError(
            f"{action!r} is no action of a stage: write F0 for the forward of microbatch 0, B0 for its "
            "backward."
        )
    return found[1], int(found[2])


def _ready(
    ended: dict[tuple[int, str, int], float], stage: int, stages: int, kind: str, number: int
) -> float | None:
    if kind == "F":
        return 0.0 if stage == 0 else ended.get((stage - 1, "F", number))
    own = ended.get((stage, "F", number))
    if stage == stages - 1 or own is None:
        return own
    return ended.get((stage + 1, "B", number))


def _stuck(lanes: Sequence[Sequence[Piece]], wanted: Sequence[Sequence[tuple[str, int]]]) -> str:
    waiting = [
        f"stage {stage} wants to run {order[len(lane)][0]}{order[len(lane)][1]}"
        for stage, (lane, order) in enumerate(zip(lanes, wanted, strict=True))
        if len(lane) < len(order)
    ]
    return (
        f"these orders never get to their end: {', '.join(waiting)}, which nobody makes possible."
    )
