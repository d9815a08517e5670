"""Write notes for learners on the repairs of their answer.

`build` calls this module. Notes report definitions that were chosen, moved or skipped. In a kernel's history,
where cells are edited and run again all the time, only notes that still matter are given.
"""

from __future__ import annotations

import builtins
from collections.abc import Callable, Iterator

from helpers.answers.closure import Closure
from helpers.answers.listing import AWAIT_PATTERN, BrokenCell, Listing, Statement

CellNamer = Callable[[int], str]

# Names defined by Python, IPython and a class body.
_PROVIDED_NAMES = frozenset(dir(builtins)) | {"__file__", "__annotations__", "__class__", "display"}


def repair_notes(listing: Listing, closure: Closure, name_cell: CellNamer) -> Iterator[str]:
    """Yield notes on chosen or moved definitions, because cells may be duplicated or reordered."""
    yield from _redefinitions(listing, closure, name_cell)
    yield from _definitions_below(closure, name_cell)
    yield from _moved_statements(closure, name_cell)


def _redefinitions(listing: Listing, closure: Closure, name_cell: CellNamer) -> Iterator[str]:
    taken = set(closure.statements)
    definitions = (s for s in closure.statements if s.is_definition)
    for name in dict.fromkeys(name for s in definitions for name in sorted(s.names.binds)):
        rivals = [s for s in listing.binders(name) if s.is_definition and not s.skipped]
        last = rivals[-1] if rivals else None
        # if an earlier definition is also needed, for example by a decorator, none was chosen over another
        if last in taken and len(rivals) > 1 and any(s not in taken for s in rivals):
            times = len(rivals)
            yield f"`{name}` is defined {times} times: the last one is taken ({_cell_of(last, name_cell)})"


def _cell_of(statement: Statement | None, name_cell: CellNamer) -> str:
    return name_cell(statement.cell) if statement else ""


def _definitions_below(closure: Closure, name_cell: CellNamer) -> Iterator[str]:
    for statement in closure.statements:
        reached = closure.reached[statement.position]
        user = reached.user
        if user is None or not reached.later or not statement.is_definition:
            continue
        if statement.cell > user.cell:
            yield (
                f"helper `{reached.name}` is defined below the function that uses it "
                f"({name_cell(statement.cell)})"
            )


def _moved_statements(closure: Closure, name_cell: CellNamer) -> Iterator[str]:
    # Begin at the end: a statement that precedes a statement of an earlier cell was moved up to it.
    highest = -1
    for statement in reversed(closure.statements):
        reached = closure.reached[statement.position]
        if 0 <= highest < statement.cell and reached.name != "*":
            yield (
                f"`{reached.name}` ({name_cell(statement.cell)}) is needed earlier, in {name_cell(highest)}: "
                "it is moved there"
            )
        highest = statement.cell if highest < 0 else min(highest, statement.cell)


def standing_notes(closure: Closure, name_cell: CellNamer) -> Iterator[str]:
    """Yield notes on deleted and unknown names, which matter for notebooks and kernels alike."""
    for statement in closure.statements:
        if statement.text.startswith("del ") and statement.names.binds:
            name = min(statement.names.binds)
            yield f"{name_cell(statement.cell)} deletes `{name}`, which the answer uses"
    if any(statement.names.star for statement in closure.statements):
        return  # a star import may define any name
    set_inside = {name for s in closure.statements for name in s.names.set_globally}
    for name, user in closure.unknown.items():
        if name not in _PROVIDED_NAMES and name not in set_inside:
            function = min(user.names.binds, default="the answer")
            yield f"no cell defines `{name}`, which `{function}` uses ({name_cell(user.cell)})"


def broken_note(cell: BrokenCell, name_cell: CellNamer) -> str:
    """Return a note that a cell was skipped because it is not Python."""
    line = f" (line {cell.line})" if cell.line else ""
    return f"{name_cell(cell.cell)} cannot be parsed{line}: skipped"


def await_notes(listing: Listing, name_cell: CellNamer) -> Iterator[str]:
    """Yield notes on statements that are skipped because they need the notebook's event loop."""
    for statement in listing.matching(AWAIT_PATTERN):
        if statement.skipped == "await":
            at = f"{name_cell(statement.cell)}, line {statement.line}"
            yield f"{at}: a check does not run a top-level `await`"
