"""Split cells into numbered top-level statements, and find them by the names that they bind or change.

`build` makes one `Listing` of a notebook (or of a kernel's history) and uses it for every answer. `closure`
asks which statements bind a name at a point of the program. A point is the position of a statement, or END:
the moment when all cells have run and the answer is called. A cell is only parsed if its text may bind a
requested name, because in a long history most cells do not concern the answer.
"""

from __future__ import annotations

import ast
import functools
import re
import sys
import unicodedata
import warnings
from bisect import bisect_left, insort
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

from helpers.answers.magics import has_stored_magics, strip_magics
from helpers.answers.names import Names, names_of
from helpers.answers.scopes import imported_name

Position = tuple[int, int]  # (cell, number of earlier statements in that cell)
END_OF_CELLS: Position = (sys.maxsize, 0)
SkipReason = Literal["", "await", "main"]

AWAIT_PATTERN = re.compile(r"\bawait\b|\basync\s+(?:for|with)\b")
_POSTPONES_ANNOTATIONS_PATTERN = re.compile(
    r"^[ \t]*from\s+__future__\s+import\b[\s(]*(?:\w+\s*,\s*)*annotations\b", re.MULTILINE
)
DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)


@dataclass(frozen=True, eq=False)
class Statement:
    """One top-level statement of a learner's cell. line: its first line from 1, including decorators."""

    position: Position
    line: int
    text: str
    node: ast.stmt
    postponed: bool = False
    """Whether annotations are not evaluated."""

    @property
    def cell(self) -> int:
        return self.position[0]

    @cached_property
    def names(self) -> Names:
        return names_of(self.node, self.postponed)

    @cached_property
    def skipped(self) -> SkipReason:
        """The reason why this statement is never run, or ""."""
        if isinstance(self.node, ast.If) and _is_main_guard(self.node.test):
            return "main"
        return "await" if AWAIT_PATTERN.search(self.text) and self.names.awaits else ""

    @property
    def is_definition(self) -> bool:
        return isinstance(self.node, DEFINITIONS)

    @property
    def is_import(self) -> bool:
        return isinstance(self.node, (ast.Import, ast.ImportFrom))


@dataclass(frozen=True)
class BrokenCell:
    """A cell that is not Python. line: the line where parsing stopped, or 0 if it is unknown."""

    cell: int
    line: int
    reason: str


@functools.lru_cache(maxsize=1000)  # each text is searched for every missing answer
def normalize_text(text: str) -> str:
    """Return code in NFKC form, which Python uses for names, so that names can be found in it.

    Invisible characters are removed, because text pasted from web pages or documents may contain them
    anywhere.
    """
    if text.isascii():
        return text
    text = unicodedata.normalize("NFKC", text)
    return "".join(character for character in text if unicodedata.category(character) != "Cf")


class Listing:
    """The cells of one notebook or history, in order, parsed only as far as necessary."""

    def __init__(self, cells: Sequence[str]) -> None:
        self._sources = [cell if isinstance(cell, str) else "" for cell in cells]
        self._searched = list(map(normalize_text, self._sources))
        # search all cells, because an answer begins with all imports from __future__
        self._postponed = any(map(_POSTPONES_ANNOTATIONS_PATTERN.search, self._searched))
        self._parsed: dict[int, list[Statement]] = {}
        self._broken: dict[int, BrokenCell] = {}
        # cells that `broken` has parsed
        self._examined: set[int] = set()
        self._binders: dict[str, list[Statement]] = {}
        self._changers: dict[str, list[Statement]] = {}
        self._asked: set[str] = set()

    def binders(self, name: str) -> list[Statement]:
        """Return the statements that bind `name`, in order, including those that are never run."""
        self._load_cells_with(name)
        return self._binders.get(name, [])

    def changers(self, name: str) -> list[Statement]:
        """Return the statements that change the object called `name`, in order."""
        self._load_cells_with(name)
        return self._changers.get(name, [])

    def binders_at(self, name: str, point: Position) -> list[Statement]:
        """Return the statements that may have bound `name` at a point, latest first.

        The list ends with a statement that certainly binds the name. If cells were reordered, so that no
        statement above the point binds the name, statements below it are returned.
        """
        binders = [statement for statement in self.binders(name) if not statement.skipped]
        above = binders[: bisect_left(binders, point, key=_position)]
        chosen: list[Statement] = []
        for statement in reversed(above or binders):
            chosen.append(statement)
            if name in statement.names.binds:
                break
        return chosen

    def changers_of(self, name: str, chosen: list[Statement]) -> Iterator[Statement]:
        """Yield the statements that change the object bound to `name` by `chosen` (from `binders_at`)."""
        if not chosen:
            return
        latest, first = chosen[0], chosen[-1]
        binders = [statement for statement in self.binders(name) if not statement.skipped]
        later = (b for b in binders if b.position > latest.position and name in b.names.binds)
        until = next(later, None)
        for statement in self.changers(name):
            # the change is above the definition of the changed object
            orphan = statement.position < binders[0].position
            after = statement.position > first.position
            before_next = until is None or statement.position < until.position
            if statement in chosen or statement.skipped or not (orphan or after and before_next):
                continue
            if _is_change(statement, name, latest):
                yield statement

    def forget(self, name: str, statements: Sequence[Statement]) -> None:
        """Remove `statements` from the statements that bind `name`."""
        self._binders[name] = [s for s in self.binders(name) if s not in statements]

    def matching(self, pattern: re.Pattern[str]) -> list[Statement]:
        """Return all statements of the cells whose text matches `pattern`."""
        found = [index for index, text in enumerate(self._searched) if pattern.search(text)]
        for index in found:
            self._load_cell(index)
        return [statement for index in found for statement in self._parsed[index]]

    def broken(self, name: str = "") -> list[BrokenCell]:
        """Return the unparseable cells whose text contains `name`."""
        found = [index for index, text in enumerate(self._searched) if name in text]
        for index in found:
            if index not in self._parsed and index not in self._examined:
                # do not store the tree, because few of these cells are ever needed
                self._parse(index)
                self._examined.add(index)
        return [self._broken[index] for index in found if index in self._broken]

    def sources(self) -> Sequence[str]:
        """Return the text of every cell."""
        return self._sources

    def _load_cells_with(self, name: str) -> None:
        if name in self._asked:
            return
        self._asked.add(name)
        for index, text in enumerate(self._searched):
            if may_bind(name, text):
                self._load_cell(index)

    def _load_cell(self, index: int) -> None:
        if index not in self._parsed:
            self._parsed[index] = self._parse(index)
            for statement in self._parsed[index]:
                self._register(statement)

    def _parse(self, index: int) -> list[Statement]:
        source = self._sources[index].replace("\r\n", "\n").replace("\r", "\n")
        try:
            return list(parse_cell(source, index, self._postponed))
        except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
            self._broken[index] = _broken_cell(index, error)
            return []

    def _register(self, statement: Statement) -> None:
        binds, changes = _find_effects(statement)
        # cells are loaded on demand, in any order
        for name in binds:
            insort(self._binders.setdefault(name, []), statement, key=_position)
        for name in changes:
            insort(self._changers.setdefault(name, []), statement, key=_position)


def _is_change(statement: Statement, name: str, binder: Statement) -> bool:
    names = statement.names
    if name in names.stores:
        return True
    if binder.is_import:
        # `torch.manual_seed(0)` and `@torch.no_grad()` do not change the imported object
        return False
    if name in names.registers:
        return True
    # `xs.append(1)` changes the list xs, but `Tree.show()` does not change the class Tree.
    return name in names.pokes and not binder.is_definition


def _position(statement: Statement) -> Position:
    return statement.position


def _broken_cell(index: int, error: Exception) -> BrokenCell:
    if isinstance(error, SyntaxError):
        return BrokenCell(index, error.lineno or 0, error.msg or "invalid syntax")
    if isinstance(error, (RecursionError, MemoryError)):
        return BrokenCell(index, 0, "it is nested too deeply")
    return BrokenCell(index, 0, "it contains characters that are not text")


def parse_quietly(source: str) -> ast.Module:
    """Parse the source without warnings on invalid escapes, which were already shown when the cell ran."""
    with warnings.catch_warnings(action="ignore"):
        return ast.parse(source)


def parse_cell(source: str, index: int, postponed: bool = False) -> Iterator[Statement]:
    """Yield the top-level statements of a cell, without magics and shell lines.

    postponed: whether annotations are not evaluated, because some cell imports them from __future__.
    """
    text = strip_magics(source) if has_stored_magics(source) else source
    try:
        tree = parse_quietly(text)
    except SyntaxError:
        text = strip_magics(text)
        tree = parse_quietly(text)
    lines = text.split("\n")
    number = 0
    for node in tree.body:
        for part in _split_statement(node):
            body = _text_of(part, lines) if part is node else ast.unparse(part)
            yield Statement((index, number), _first_line(part), body, part, postponed)
            number += 1


def _split_statement(node: ast.stmt) -> list[ast.stmt]:
    """Split a statement with several effects, because some may be needed and others unwanted.

    In `from helpers import check, span`, ranks do not need `check`. In `del model, run`, ranks have no `run`.
    """
    if isinstance(node, ast.Delete) and len(node.targets) > 1:
        return [ast.copy_location(ast.Delete([target]), target) for target in node.targets]
    if isinstance(node, ast.Import) and len(node.names) > 1:
        return [ast.copy_location(ast.Import([alias]), alias) for alias in node.names]
    if isinstance(node, ast.ImportFrom) and len(node.names) > 1 and node.module != "__future__":
        single = ((ast.ImportFrom(node.module, [alias], node.level), alias) for alias in node.names)
        return [ast.copy_location(part, alias) for part, alias in single]
    return [node]


def _first_line(node: ast.stmt) -> int:
    decorators = getattr(node, "decorator_list", [])
    lines: list[int] = [node.lineno, *(decorator.lineno for decorator in decorators)]
    return min(lines)


def _text_of(node: ast.stmt, lines: list[str]) -> str:
    first, last = _first_line(node), node.end_lineno or node.lineno
    block = lines[first - 1 : last]
    block[-1] = _cut_line(block[-1], 0, node.end_col_offset)
    if first == node.lineno:  # statements may share a line: `a = 1; b = 2`
        block[0] = _cut_line(block[0], node.col_offset, None)
    return "\n".join(block)


def _cut_line(line: str, start: int, end: int | None) -> str:
    if line.isascii():
        return line[start:end]
    return line.encode()[start:end].decode()  # the tree's columns count bytes


def _is_main_guard(test: ast.expr) -> bool:
    if not isinstance(test, ast.Compare) or len(test.ops) != 1:
        return False
    sides = (test.left, test.comparators[0])
    named = any(isinstance(side, ast.Name) and side.id == "__name__" for side in sides)
    main = any(isinstance(side, ast.Constant) and side.value == "__main__" for side in sides)
    return named and main and isinstance(test.ops[0], ast.Eq)


def _find_effects(statement: Statement) -> tuple[Sequence[str], Sequence[str]]:
    """Return (bound names, changed names). For common forms, no walk over the whole tree is needed."""
    node, text = statement.node, statement.text
    if isinstance(node, DEFINITIONS) and not node.decorator_list and ":=" not in text:
        return [node.name], []
    if isinstance(node, ast.Import):
        return [imported_name(alias) for alias in node.names], []
    if isinstance(node, ast.ImportFrom):
        return [imported_name(alias) for alias in node.names if alias.name != "*"], []
    if isinstance(node, ast.Assign) and ":=" not in text:
        names = [target.id for target in node.targets if isinstance(target, ast.Name)]
        if len(names) == len(node.targets):
            return names, []
    found = statement.names
    return [*found.binds, *found.may_bind], [*found.stores, *found.registers, *found.pokes]


# --- skipping cells by their text -----------------------------------------------------------------
#
# Parsing 10,000 lines takes a third of a second, longer than a whole check. Searching the lines that contain
# a name takes milliseconds. A wrongly skipped cell would be missing from an answer, so cells count as binding
# the name if in doubt.

_MAX_LINE = 1_000

_BINDING_WORD_PATTERN = re.compile(
    r"\b(?:import|as|del|case|setattr|delattr)\b|\b(?:def|class|type)\s+$"
    r"|\bfor\b(?:(?!\bin\b).)*$"
)
_STATEMENT_START_PATTERN = re.compile(r"(?:^|[;:]|%time)[\s(\[*@]*$")
_LONE_NAME_END_PATTERN = re.compile(r"[\s,\w\])*]*(?:#.*)?\\?$")
_BRACKET_OR_ASSIGNMENT_PATTERN = re.compile(r"[()\[\]{}]|(?<![=!<>])=(?!=)|<<=|>>=")
_BRANCHING_PATTERN = re.compile(
    r"^(?:if|for|while|with|try|match|async)\b|\A\s*\n?[ \t]", re.MULTILINE
)


def may_bind(name: str, text: str) -> bool:
    """Return whether a cell with this text may bind `name` or change the object called `name`."""
    position = text.find(name)
    if position < 0:
        return False
    if has_stored_magics(text):
        return True
    flat = _BRANCHING_PATTERN.search(text) is None
    while position >= 0:
        start = text.rfind("\n", 0, position) + 1
        end = text.find("\n", position)
        end = len(text) if end < 0 else end
        after = position + len(name)
        if end - start > _MAX_LINE or _line_may_bind(text[start:position], text[after:end], flat):
            return True
        position = text.find(name, after)
    return False


def _line_may_bind(before: str, after: str, flat: bool) -> bool:
    """Return whether a line, split at the name, may bind or change it.

    flat: whether the cell has no top-level branches, so that an indented `xs.append(1)` is inside a function.
    """
    if _is_word_character(before[-1:]) or _is_word_character(after[:1]):
        return False  # part of a longer name
    if _BINDING_WORD_PATTERN.search(before) or ("=" in after and _is_assigned(after)):
        return True
    if flat and before[:1].isspace() and after[:1] in (".", "[", "("):
        return False
    return (
        _STATEMENT_START_PATTERN.search(before) is not None
        or _LONE_NAME_END_PATTERN.fullmatch(after) is not None
    )


def _is_word_character(character: str) -> bool:
    return character.isalnum() or character == "_"


def _is_assigned(after: str) -> bool:
    """Return whether the `=` of an assignment, not of a keyword argument, follows on the line."""
    depth = 0
    for found in _BRACKET_OR_ASSIGNMENT_PATTERN.finditer(after):
        if found[0] in "([{":
            depth += 1
        elif found[0] in ")]}":
            depth -= 1
        elif depth <= 0:
            return True
    return False
