"""An answer: a learner's function or class as source text, with all that it needs.

    cells --Listing--> statements --closure--> those needed --compose--> Answer --> a rank runs it

Called with a notebook's cells by `reader_child` and with a kernel's history by `history`:
the same steps for both, so that a check in the notebook and a grade see the same source. Nothing is
executed here.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

from helpers.answers.closure import Unresolved, find_closure
from helpers.answers.compose import compose, future_imports, sound
from helpers.answers.data import Answer, Origin, Problem, ProblemKind, Where
from helpers.answers.listing import Listing, Statement
from helpers.answers.notes import (
    await_notes,
    broken_note,
    repair_notes,
    standing_notes,
)
from helpers.answers.stub import stub_line
from helpers.answers.text import normalize

__all__ = ["Answer", "Origin", "Problem", "build_answer", "cell_number", "normalize"]


def cell_number(index: int) -> str:
    """Name a notebook's cell as a person counts it, from the top."""
    return f"cell {index + 1}"


def build_answer(
    cells: Sequence[str] | Listing,
    name: str,
    *,
    where: Where = cell_number,
    history: bool = False,
) -> Answer | Problem:
    """Build the answer called `name` from the cells' source texts, in the order in which they run.

    cells: a cell that holds no code is an empty text, so that indices are the notebook's; a
    `Listing` may be given instead, to build several answers from one. where: how messages call a
    cell. history: the cells are what a kernel ran; then a stub that was run last is what counts,
    and cells that were run again, or failed, are not repairs.
    """
    listing = cells if isinstance(cells, Listing) else Listing(cells)
    try:
        return _Build(listing, name, where, history).run()
    except (RecursionError, MemoryError):
        message = f"`{name}`, or what it needs, is nested too deeply to be read: simplify it."
        return Problem("syntax_error", message, name)


@dataclass(frozen=True)
class _Build:
    listing: Listing
    name: str
    where: Where
    history: bool

    def run(self) -> Answer | Problem:
        if self.history:
            return self._build()
        repairs = self._stub_notes()
        found = self._build()
        notes = dict.fromkeys([*self._cell_notes(), *repairs, *found.notes])
        return replace(found, notes=tuple(notes))

    def _build(self) -> Answer | Problem:
        if problem := self._missing():
            return problem
        try:
            closure = find_closure(self.listing, self.name, self.where)
        except Unresolved as error:
            return self._problem("unresolved", str(error))
        notes = [] if self.history else [*repair_notes(self.listing, closure, self.where)]
        notes += standing_notes(closure, self.where)
        answer = compose(self.name, [*future_imports(self.listing), *closure.statements])
        return sound(replace(answer, notes=tuple(notes)), self.where)

    def _cell_notes(self) -> list[str]:
        broken = [broken_note(cell, self.where) for cell in self.listing.broken()]
        return [*broken, *await_notes(self.listing, self.where)]

    def _stub_notes(self) -> list[str]:
        """Pass over stubs where there is an attempt: a cell that was copied must not cost marks."""
        binders = self.listing.binders(self.name)
        stubs = [s for s in binders if stub_line(s.node)]
        attempts = [s for s in binders if s not in stubs and not s.skipped]
        if not stubs or not attempts:
            return []
        self.listing.forget(self.name, stubs)
        if stubs[-1].position < attempts[-1].position:
            return []
        return [
            f"`{self.name}` in {self.where(stubs[-1].cell)} still is the stub: "
            f"the one in {self.where(attempts[-1].cell)} is taken"
        ]

    # --- why there may be none -------------------------------------------------------------------

    def _missing(self) -> Problem | None:
        binders = self.listing.binders(self.name)
        last = next((s for s in reversed(binders) if not s.skipped), None)
        if (last is None or stub_line(last.node)) and (problem := self._broken()):
            return problem
        if last is not None:
            return self._unusable(last)
        if binders:
            return self._never_run(binders[-1])
        return self._under_magic() or self._problem(
            "not_attempted", f"no cell defines `{self.name}`."
        )

    def _problem(self, kind: ProblemKind, message: str) -> Problem:
        return Problem(kind, message, self.name)

    def _unusable(self, last: Statement) -> Problem | None:
        cell = self.where(last.cell)
        if line := stub_line(last.node):
            return self._problem(
                "not_attempted",
                f"`{self.name}` still holds its `raise NotImplementedError` ({cell}, line {line}): "
                "write your code in its place.",
            )
        if isinstance(last.node, ast.Delete):
            return self._problem("not_attempted", f"{cell} deletes `{self.name}` again.")
        if last.is_import:
            return self._problem(
                "unresolved",
                f"`{self.name}` is imported in {cell}: its code is in another file, which is not "
                "handed in. Write it in a cell of the notebook.",
            )
        return None

    def _never_run(self, last: Statement) -> Problem:
        what = "a top-level `await`" if last.skipped == "await" else "`if __name__ == ...:`"
        return self._problem(
            "unresolved",
            f"`{self.name}` is defined under {what} only ({self.where(last.cell)}), which is not "
            "run here: define it outside.",
        )

    def _broken(self) -> Problem | None:
        """The last unreadable cell that seems to define the answer."""
        for cell in reversed(self.listing.broken(self.name)):
            if self._defines(self.listing.sources()[cell.cell]):
                line = f", line {cell.line}" if cell.line else ""
                return self._problem(
                    "syntax_error",
                    f"{self.where(cell.cell)}{line} is not valid Python: {cell.reason}. The cell "
                    f"defines `{self.name}`, and none of it can run: correct it.",
                )
        return None

    def _under_magic(self) -> Problem | None:
        """`%%ranks` and its like: the definition exists, but not in the notebook's own names."""
        for index, text in enumerate(self.listing.sources()):
            if text.lstrip().startswith("%%") and self._defines(text):
                magic = text.split(maxsplit=1)[0]
                return self._problem(
                    "unresolved",
                    f"`{self.name}` is defined under `{magic}` only ({self.where(index)}), whose "
                    f"names are not the notebook's: define it in a cell without `{magic}`.",
                )
        return None

    def _defines(self, text: str) -> bool:
        name = re.escape(self.name)
        pattern = rf"^[ \t]*(?:(?:async[ \t]+)?def|class)[ \t]+{name}\b|^{name}[ \t]*=(?!=)"
        return re.search(pattern, text, re.MULTILINE) is not None
