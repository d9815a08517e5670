"""The order in which the statements of a closure run: as written, unless cells were reordered.

Called by `closure`. A statement that needs a name at once, and has it only from below, is given
what binds the name before it.
"""

from __future__ import annotations

from collections.abc import Mapping

from helpers.answers.listing import Position, Statement

Edges = Mapping[Position, set[Position]]


def in_order(taken: Mapping[Position, Statement], hard: Edges, soft: Edges) -> list[Statement]:
    """Sort by position, but what a statement needs (hard) or may need (soft) goes before it."""
    done: dict[Position, None] = {}
    started: set[Position] = set()

    def needed_first(position: Position) -> list[Position]:
        before = set(hard.get(position, ()))
        for other in soft.get(position, set()) - before:
            # What may be needed is moved up only where that breaks nothing that is needed for sure.
            if other < position or not _depends(other, position, hard):
                before.add(other)
        return sorted(before & taken.keys())

    def put(position: Position) -> None:
        if position in started:
            return
        started.add(position)
        for other in needed_first(position):
            put(other)
        done[position] = None

    for position in sorted(taken):
        put(position)
    return [taken[position] for position in done]


def _depends(start: Position, goal: Position, hard: Edges) -> bool:
    pending, seen = [start], {start}
    while pending:
        for other in hard.get(pending.pop(), ()):
            if other == goal:
                return True
            if other not in seen:
                seen.add(other)
                pending.append(other)
    return False
