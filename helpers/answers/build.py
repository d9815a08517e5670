"""Build an answer: a learner's function or class as source text, with all code that it needs.

    cells --Listing--> statements --closure--> needed statements --compose--> Answer --> a rank runs it

`reader_child` passes a notebook's cells, and `history` passes a kernel's history. The steps are the same for
both, so that a check in the notebook and a grade use the same source. This module executes no code of the
learner.
"""

from __future__ import annotations
import __future__

import ast
import difflib
import re
import warnings
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from helpers.answers.closure import Unresolved, find_closure
from helpers.answers.data import Answer, CellNamer, Origin, Problem, ProblemKind
from helpers.answers.listing import DEFINITIONS, Listing, Statement, normalize_text, parse_quietly
from helpers.answers.notes import await_notes, broken_note, repair_notes, standing_notes

__all__ = ["Answer", "Origin", "Problem", "build_answer", "cell_number", "normalize"]


def cell_number(index: int) -> str:
    """Return a notebook cell's name for messages: its number from the top, beginning with 1."""
    return f"cell {index + 1}"


def build_answer(
    cells: Sequence[str] | Listing,
    name: str,
    *,
    where: CellNamer = cell_number,
    from_history: bool = False,
    others: Collection[str] = (),
) -> Answer | Problem:
    """Build the answer called `name` from the cells' source texts, in the order in which they run.

    Args:
        cells: The texts, with "" for cells without code, so that indices are those of the notebook. To build
            several answers from the same cells, pass a `Listing`.
        name: The name of the function or class.
        where: A function that returns a cell's name for messages.
        from_history: Whether a kernel ran the cells. If so, a stub that ran last is used, and repairs of
            cells that ran again or failed are not noted.
        others: Names of the other requested answers, none of which is a misspelling of `name`.
    """
    listing = cells if isinstance(cells, Listing) else Listing(cells)
    try:
        return _Build(listing, name, where, from_history, others).run()
    except (RecursionError, MemoryError):
        message = f"`{name}`, or code that it uses, is nested too deeply to read: simplify it."
        return Problem("syntax_error", message, name)


@dataclass(frozen=True)
class _Build:
    listing: Listing
    name: str
    where: CellNamer
    from_history: bool
    others: Collection[str] = ()

    def run(self) -> Answer | Problem:
        # in a kernel, cells are edited and run again all the time, so no notes are needed
        if self.from_history:
            return self._build()
        repairs = self._stub_notes()
        found = self._build()
        notes = dict.fromkeys([*self._cell_notes(), *repairs, *found.notes])
        return replace(found, notes=tuple(notes))

    def _build(self) -> Answer | Problem:
        if problem := self._missing_problem():
            return problem
        try:
            closure = find_closure(self.listing, self.name, self.where)
        except Unresolved as error:
            return self._problem("unresolved", str(error))
        notes = [] if self.from_history else [*repair_notes(self.listing, closure, self.where)]
        notes += standing_notes(closure, self.where)
        answer = _compose(self.name, [*_future_imports(self.listing), *closure.statements])
        return _check_compiles(replace(answer, notes=tuple(notes)), self.where)

    def _cell_notes(self) -> list[str]:
        broken = [broken_note(cell, self.where) for cell in self.listing.broken()]
        return [*broken, *await_notes(self.listing, self.where)]

    def _stub_notes(self) -> list[str]:
        """Ignore stubs if there is an attempt, so that copied cells cost no marks. Return notes on them."""
        binders = self.listing.binders(self.name)
        stubs = [s for s in binders if stub_line(s.node)]
        attempts = [s for s in binders if s not in stubs and not s.skipped]
        if not stubs or not attempts:
            return []
        # the order does not matter: a stub below the attempt is a copy of the notebook's original cell
        self.listing.forget(self.name, stubs)
        if stubs[-1].position < attempts[-1].position:
            return []
        return [
            f"`{self.name}` in {self.where(stubs[-1].cell)} is still the stub, so the version in "
            f"{self.where(attempts[-1].cell)} is used"
        ]

    # --- problems --------------------------------------------------------------------------------

    def _missing_problem(self) -> Problem | None:
        binders = self.listing.binders(self.name)
        # If only the stub is found, a cell that cannot be parsed may contain the attempt.
        last = next((s for s in reversed(binders) if not s.skipped), None)
        if (last is None or stub_line(last.node)) and (problem := self._broken_cell_problem()):
            return problem
        if last is not None:
            return self._skipped_problem(last)
        if binders:
            return self._never_run_problem(binders[-1])
        return (
            self._under_magic_problem()
            or self._misspelling_problem()
            or self._problem("not_defined", f"no cell defines `{self.name}`.")
        )

    def _misspelling_problem(self) -> Problem | None:
        """Return a problem if a definition's name is a likely misspelling of the answer's."""
        found: dict[str, int] = {}
        for index, text in enumerate(self.listing.sources()):
            found |= dict.fromkeys(_DEFINITION_PATTERN.findall(text), index)
        near = difflib.get_close_matches(
            self.name.casefold(), map(str.casefold, found), 1, _MIN_SIMILARITY
        )
        if not near:
            return None
        name = next(each for each in found if each.casefold() == near[0])
        # that name may belong to a similarly named exercise, while this exercise is missing
        if name in self.others:
            return None
        return self._problem(
            "not_defined",
            f"no cell defines `{self.name}`. Did you mean `{name}` ({self.where(found[name])})? Rename it to "
            f"`{self.name}`.",
        )

    def _problem(self, kind: ProblemKind, message: str) -> Problem:
        return Problem(kind, message, self.name)

    def _skipped_problem(self, definition: Statement) -> Problem | None:
        cell = self.where(definition.cell)
        if line := stub_line(definition.node):
            return self._problem(
                "not_attempted",
                f"`{self.name}` still contains its `raise NotImplementedError` "
                f"({cell}, line {line}): "
                "write your code in its place.",
            )
        if isinstance(definition.node, ast.Delete):
            return self._problem(
                "not_attempted", f"{cell} deletes `{self.name}`. Remove that line."
            )
        if definition.is_import:
            return self._problem(
                "unresolved",
                f"`{self.name}` is imported in {cell}: its code is in another file, which is not "
                "handed in. Write it in a cell of the notebook.",
            )
        return None

    def _never_run_problem(self, definition: Statement) -> Problem:
        what = "a top-level `await`" if definition.skipped == "await" else "`if __name__ == ...:`"
        return self._problem(
            "unresolved",
            f"`{self.name}` is defined only under {what} ({self.where(definition.cell)}), which a "
            "check does not run. Define it outside.",
        )

    def _broken_cell_problem(self) -> Problem | None:
        """Return a problem about the last unparseable cell that seems to define the answer."""
        for cell in reversed(self.listing.broken(self.name)):
            if defines(self.listing.sources()[cell.cell], self.name):
                line = f", line {cell.line}" if cell.line else ""
                # Python's message about a character that editors do not show
                unseen = "non-printable character" in cell.reason
                advice = "type that line again, without pasting" if unseen else "correct it"
                return self._problem(
                    "syntax_error",
                    f"{self.where(cell.cell)}{line} is not valid Python: {cell.reason}. The cell "
                    f"defines `{self.name}`, and none of it can run: {advice}.",
                )
        return None

    def _under_magic_problem(self) -> Problem | None:
        """Return a problem if only a cell under a magic, such as `%%ranks`, defines the answer."""
        for index, text in enumerate(self.listing.sources()):
            if text.lstrip().startswith("%%") and defines(text, self.name):
                magic = text.split(maxsplit=1)[0]
                return self._problem(
                    "unresolved",
                    f"`{self.name}` is defined only under `{magic}` ({self.where(index)}), and cells under "
                    f"`{magic}` are not read as answers: define it in a cell without `{magic}`.",
                )
        return None


# Minimum similarity of a misspelled name. Python's suggestions are at most as strict.
_MIN_SIMILARITY = 0.8
_DEFINITION_PATTERN = re.compile(r"^(?:async[ \t]+def|def|class)[ \t]+(\w+)", re.MULTILINE)


def defines(text: str, name: str) -> bool:
    """Return whether unparseable code seems to define a name."""
    name = re.escape(name)
    pattern = rf"^[ \t]*(?:(?:async[ \t]+)?def|class)[ \t]+{name}\b|^{name}[ \t]*=(?!=)"
    return re.search(pattern, normalize_text(text), re.MULTILINE) is not None


# --- stubs ----------------------------------------------------------------------------------------


def stub_line(node: ast.stmt) -> int:
    """Return the line of the `raise NotImplementedError("Exercise ...")` in a definition, or 0.

    Code given before the stub does not count as an attempt. A stub after a `return` is dead code, so it
    does not count as a stub. If one method is unwritten, the class counts as not attempted. But if a class
    only collects static methods, one written method is an attempt.
    """
    if isinstance(node, ast.ClassDef) and not node.bases:
        methods = [each for each in node.body if isinstance(each, DEFINITIONS)]
        if methods and all(map(_is_static, methods)):
            lines = [_stub_line_in_block(each.body) for each in methods]
            return lines[0] if all(lines) else 0
    return _stub_line_in_block(node.body) if isinstance(node, DEFINITIONS) else 0


def _is_static(node: ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) -> bool:
    return any(isinstance(d, ast.Name) and d.id == "staticmethod" for d in node.decorator_list)


def _stub_line_in_block(body: Sequence[ast.stmt]) -> int:
    for statement in body:
        if _is_stub(statement):
            return statement.lineno
        if isinstance(statement, (ast.Return, ast.Raise)):
            return 0
        if isinstance(statement, (*DEFINITIONS, ast.With, ast.For, ast.While)) and (
            line := _stub_line_in_block(statement.body)
        ):
            return line
    return 0


def _is_stub(statement: ast.stmt) -> bool:
    call = statement.exc if isinstance(statement, ast.Raise) else None
    if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Name) or not call.args:
        return False
    text = call.args[0].value if isinstance(call.args[0], ast.Constant) else None
    is_text = isinstance(text, str) and text.startswith("Exercise")
    return call.func.id == "NotImplementedError" and is_text


# --- joining statements ---------------------------------------------------------------------------

MAX_SOURCE_CHARS = 200_000


def _compose(name: str, statements: Iterable[Statement]) -> Answer:
    """Join the statements in the given order, and record the origin of each."""
    # an error in a rank refers to a line of this source; `origins` map the line back to its cell
    texts: list[str] = []
    origins: list[Origin] = []
    first = 1
    for statement in _without_repeats(statements):
        count = statement.text.count("\n") + 1
        origins.append(Origin(first, count, statement.cell, statement.line))
        texts.append(statement.text)
        first += count
    return Answer(name, "\n".join([*texts, ""]), tuple(origins))


def _without_repeats(statements: Iterable[Statement]) -> Iterator[Statement]:
    """Yield statements without repeated `import torch`, with which many cells begin."""
    imported: dict[str, set[str]] = {}
    for statement in statements:
        names = statement.names
        if statement.is_import:
            bound = names.binds | names.may_bind
            if bound and all(statement.text in imported.get(name, ()) for name in bound):
                continue
            for name in bound:
                kept = imported.get(name, set()) if name in names.may_bind else set()
                imported[name] = kept | {statement.text}
        else:
            for name in names.binds | names.may_bind:
                imported.pop(name, None)
        yield statement


def _future_imports(listing: Listing) -> list[Statement]:
    """Return each import from __future__ once. In a kernel, these imports affect all later cells."""
    found: dict[str, Statement] = {}
    for statement in listing.matching(re.compile("__future__")):
        node = statement.node
        # the word may be in a string or a comment
        if not isinstance(node, ast.ImportFrom) or node.module != "__future__":
            continue
        if all(alias.name in __future__.all_feature_names for alias in node.names):
            found.setdefault(statement.text, statement)
    return list(found.values())


def _check_compiles(answer: Answer, name_cell: CellNamer) -> Answer | Problem:
    """Reject an answer that is too large or does not compile, as with `return` outside a function."""
    # the size is limited, because the source is sent to each rank of each world
    if len(answer.source) > MAX_SOURCE_CHARS:
        message = (
            f"`{answer.name}` and the code that it uses have {len(answer.source):,} characters; "
            f"{MAX_SOURCE_CHARS:,} are allowed. Leave out data written into the cells."
        )
        return Problem("too_large", message, answer.name, answer.notes)
    try:
        with warnings.catch_warnings(action="ignore"):
            compile(answer.source, "<answer>", "exec", dont_inherit=True)
    except (SyntaxError, ValueError) as error:
        line = error.lineno if isinstance(error, SyntaxError) else None
        place = answer.place(line or 0)
        at = f"{name_cell(place[0])}, line {place[1]}" if place else f"`{answer.name}`"
        reason = error.msg if isinstance(error, SyntaxError) else str(error)
        return Problem("syntax_error", f"{at}: {reason}.", answer.name, answer.notes)
    return answer


# --- reading an answer's source -------------------------------------------------------------------


def normalize(answer: Answer) -> str:
    """Return the answer's source without comments, docstrings and formatting."""
    try:
        tree = parse_quietly(answer.source)
        for node in ast.walk(tree):
            if isinstance(node, (ast.Module, *DEFINITIONS)):
                _drop_docstring(node)
        return ast.unparse(tree)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return answer.source


def defined_in(answer: Answer) -> list[str]:
    """Return the names of the functions and classes defined in the answer's source, each once."""
    try:
        tree = parse_quietly(answer.source)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return []
    names = (node.name for node in tree.body if isinstance(node, DEFINITIONS))
    return list(dict.fromkeys(names))


def _drop_docstring(
    node: ast.Module | ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef,
) -> None:
    first = node.body[0] if node.body else None
    value = first.value if isinstance(first, ast.Expr) else None
    if isinstance(value, ast.Constant) and isinstance(value.value, str):
        # a body must contain a statement
        node.body[:1] = [] if len(node.body) > 1 else [ast.Pass()]
