"""Which statements give a name its value at a point of the program.

Asked by `closure` (to follow names) and `origin` (to follow calls). A point is the
position of a statement, or END: when all cells have run, which is when the answer is called.
"""

from __future__ import annotations

import sys
from bisect import bisect_left
from collections.abc import Iterator

from helpers.answers.listing import Listing, Position, Statement

END: Position = (sys.maxsize, 0)


def binders_at(listing: Listing, name: str, point: Position) -> list[Statement]:
    """The statements that may have bound `name` by then, latest first, back to one that must have.

    Where the cells were reordered, so that nothing above binds the name, what is below is taken.
    """
    binders = [statement for statement in listing.binders(name) if not statement.skipped]
    above = binders[: bisect_left(binders, point, key=lambda statement: statement.position)]
    chosen: list[Statement] = []
    for statement in reversed(above or binders):
        chosen.append(statement)
        if name in statement.names.binds:
            break
    return chosen


def changers_of(listing: Listing, name: str, chosen: list[Statement]) -> Iterator[Statement]:
    """The statements that change the object which `chosen` (from `binders_at`) bound to `name`."""
    if not chosen:
        return
    latest, first = chosen[0], chosen[-1]
    binders = [statement for statement in listing.binders(name) if not statement.skipped]
    later = (b for b in binders if b.position > latest.position and name in b.names.binds)
    until = next(later, None)
    for statement in listing.changers(name):
        orphan = statement.position < binders[0].position  # a patch above what it patches
        after = statement.position > first.position
        before_next = until is None or statement.position < until.position
        if statement in chosen or statement.skipped or not (orphan or after and before_next):
            continue
        if _is_change(statement, name, latest):
            yield statement


def _is_change(statement: Statement, name: str, binder: Statement) -> bool:
    names = statement.names
    if name in names.stores:
        return True
    if binder.is_import:
        return False  # `torch.manual_seed(0)`, `@torch.no_grad()`: no change to what is imported
    if name in names.registers:
        return True
    # `xs.append(1)` makes xs what it is; `Tree.show()` is somebody trying out their class.
    return name in names.pokes and not binder.is_definition
