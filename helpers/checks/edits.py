"""Represent a program as an edit of a base program: only the lines that its author wrote differently.

    - p.grad /= dist.get_world_size()       a line of the base that the program does not have
    + p.grad *= 2                           a line in its place, or after the line that was named last
      dist.all_reduce(p.grad)               a line that stays: it shows where a `+` belongs

Lines of the base are found in order; the indentation of the whole edit does not matter. Each must directly
follow the previous one, or be the only such line below it; a comment at its end may be left out. So an edit
that fits in two places is an error, and so is one that no longer fits because the base has changed.
"""

from __future__ import annotations

import ast
import re
import tokenize
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from functools import partial
from io import StringIO

from helpers.answers.listing import DEFINITIONS

EVERYWHERE = {"import torch", "import torch.distributed as dist"}
_MARKS = ("- ", "+ ", "  ")
_COMMENT = re.compile(r"  #\s.*$")
_WORD = re.compile(r"[A-Za-z_]\w*")


def is_edit(text: str) -> bool:
    """Return whether a text is an edit. No whole program begins with an indented line or with a sign."""
    return text.lstrip("\n").startswith(("-", "+", " "))


def apply_edit(base: Sequence[str], edit: str) -> list[str]:
    """Return the lines of the base with an edit's lines removed and added.

    Raises:
        ValueError: A line of the edit has no mark, is not in the base, or occurs there more than once.
    """
    done: list[str] = []
    start = shift = 0
    new: list[str] = []
    for line in edit.splitlines():
        if not line.strip():
            continue
        mark, text = line[:2], line[2:]
        if mark.rstrip() == "+":
            new.append(text)
            continue
        if mark not in _MARKS:
            raise ValueError(f"{line!r} begins with none of `- `, `+ ` and two spaces")
        place, count = _find(base, text, start)
        if count != 1:
            raise ValueError(f"`{text.strip()}` {_why(count, start)}")
        before, found = base[start:place], _indent(base[place]) - _indent(text)
        # New lines follow the last line of the base that was found. New lines above the first line of
        # the base that was found come right before it.
        if start or done:
            done += [*_shifted(new, shift), *before]
        else:
            done += [*before, *_shifted(new, found)]
        new, shift, start = [], found, place + 1
        if mark == "  ":
            done.append(base[place])
    if not done and not start:
        raise ValueError("it names no line of the program that it changes")
    return [*done, *_shifted(new, shift), *base[start:]]


def _find(base: Sequence[str], text: str, start: int) -> tuple[int, int]:
    """Return where a line is, and how many places could be meant."""
    # A comment at a line's end may be left out. If it is given, it selects one of several lines.
    bare = str.strip if _COMMENT.search(text) else _bare
    places = [k for k in range(start, len(base)) if bare(base[k]) == bare(text)]
    # If the next line that is not blank matches, it is meant, even if there are more lines like it.
    following = next((k for k in range(start, len(base)) if base[k].strip()), None)
    if start and places and places[0] == following:
        return places[0], 1
    return (places[0] if places else -1), len(places)


def _why(count: int, start: int) -> str:
    below = " below the line before it" if start else ""
    return f"fits in {count} places{below}" if count else f"is not in the program{below}"


def _bare(line: str) -> str:
    """Return a line without its indentation and a comment at its end, which do not matter."""
    return _COMMENT.sub("", line).strip()


def _indent(text: str) -> int:
    return len(text) - len(text.lstrip())


def _shifted(lines: Sequence[str], by: int) -> list[str]:
    return [" " * (by + _indent(line)) + line.lstrip() if line.strip() else "" for line in lines]


# --- the edit that makes one program of another ---------------------------------------------------


@dataclass(frozen=True)
class _Unit:
    """One statement, or the head of a block.

    text: without comments, in a normalized form. first, end: its lines, counted from 0.
    """

    depth: int
    text: str
    first: int
    end: int

    @property
    def key(self) -> tuple[int, str]:
        return self.depth, self.text


def make_edit(base: Sequence[str], program: str, most: int) -> str:
    """Return the shortest edit found that turns a base into a program, or "" if it exceeds `most` lines.

    Local names count as equal if renaming them makes the edit shorter. Docstrings, comments and types stay
    as in the base, as do its functions and classes that the program does not define.
    """
    best, size = "", most + 1
    text = "\n".join(base)
    # Every program has torch and dist. Other imports of the base may stay, needed or not.
    imported = _imports(text) | _imports(program) & EVERYWHERE
    pick = partial(_units, imported=imported)
    units = pick(text, _defined(program))
    for renamed in _renamed(units, _names(text), program):
        wanted = pick(renamed)
        edit = _difference(base, units, wanted)
        lines = len(edit.splitlines())
        if (
            edit
            and lines < size
            and _makes(base, edit, wanted, partial(pick, only=_defined(program)))
        ):
            best, size = edit, lines
    return best


def _makes(
    base: Sequence[str], edit: str, wanted: list[_Unit], pick: Callable[[str], list[_Unit]]
) -> bool:
    try:
        made = pick("\n".join(apply_edit(base, edit)))
    except (ValueError, SyntaxError):
        return False
    return [unit.key for unit in made] == [unit.key for unit in wanted]


def _imports(source: str) -> set[str]:
    found = (
        node for node in ast.parse(source).body if isinstance(node, (ast.Import, ast.ImportFrom))
    )
    return {ast.unparse(node) for node in found}


def _defined(program: str) -> set[str]:
    return {node.name for node in ast.parse(program).body if isinstance(node, DEFINITIONS)}


def _units(source: str, only: Collection[str] = (), imported: Collection[str] = ()) -> list[_Unit]:
    """Return the statements of a program.

    only: the names of the functions and classes to include. imported: imports to leave out.
    """
    tree = _Plain().visit(ast.parse(source))
    body = [
        node
        for node in tree.body
        if not (isinstance(node, (ast.Import, ast.ImportFrom)) and ast.unparse(node) in imported)
        and not (only and isinstance(node, DEFINITIONS) and node.name not in only)
    ]
    return [*_block(body, 0, source.splitlines(), _statement_lines(source))]


def _block(
    body: Sequence[ast.stmt], depth: int, lines: list[str], ends: dict[int, tuple[int, int]]
) -> Iterator[_Unit]:
    def unit(text: str, line: int) -> _Unit:
        first, last = ends.get(line, (line, line))
        return _Unit(depth, text, first - 1, last)

    for node in body:
        for decorator in getattr(node, "decorator_list", ()):
            yield unit("@" + ast.unparse(decorator), decorator.lineno)
        parts = _parts(node)
        if not parts:
            yield unit(ast.unparse(node), node.lineno)
        for head, line, inner in parts:
            yield unit(head, line or _line_above(inner[0], head, lines))
            yield from _block(inner, depth + 1, lines, ends)


def _parts(node: ast.stmt) -> list[tuple[str, int, list[ast.stmt]]]:
    """Return the blocks of a compound statement: head, line (0 if unknown), statements."""
    if not hasattr(node, "body"):
        return []
    found = [(_head(node), node.lineno, list(node.body))]
    for handler in getattr(node, "handlers", ()):
        found.append((_head(handler), handler.lineno, handler.body))
    rest = list(getattr(node, "orelse", ()))
    while isinstance(node, ast.If) and len(rest) == 1 and isinstance(inner := rest[0], ast.If):
        found.append(("el" + _head(inner), inner.lineno, inner.body))
        rest = inner.orelse
    if rest:
        found.append(("else:", 0, rest))
    if getattr(node, "finalbody", None):
        found.append(("finally:", 0, node.finalbody))  # type: ignore[attr-defined]
    return found


def _head(node: ast.AST) -> str:
    return next(line for line in ast.unparse(node).splitlines() if line and line[0] != "@")


def _line_above(node: ast.stmt, head: str, lines: list[str]) -> int:
    first = min([node.lineno, *(d.lineno for d in getattr(node, "decorator_list", ()))])
    above = (k for k in range(first - 1, 0, -1) if lines[k - 1].strip().startswith(head))
    return next(above, first)


def _statement_lines(source: str) -> dict[int, tuple[int, int]]:
    """Return for each line the first and the last line of the statement that it belongs to."""
    found: dict[int, tuple[int, int]] = {}
    first = 0
    for token in tokenize.generate_tokens(StringIO(source).readline):
        if token.type in (tokenize.NL, tokenize.COMMENT, tokenize.INDENT, tokenize.DEDENT):
            continue
        first = first or token.start[0]
        if token.type == tokenize.NEWLINE:
            last = token.start[0]
            found |= dict.fromkeys(range(first, last + 1), (first, last))
            first = 0
    return found


class _Plain(ast.NodeTransformer):
    """Removes docstrings and types."""

    def _definition(self, node: ast.AST) -> ast.AST:
        self.generic_visit(node)
        body: list[ast.stmt] = node.body  # type: ignore[attr-defined]
        first = body[0]
        if isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant):
            node.body = body[1:] or [ast.copy_location(ast.Pass(), first)]  # type: ignore[attr-defined]
        if hasattr(node, "returns"):
            node.returns = None
        return node

    visit_FunctionDef = visit_ClassDef = visit_AsyncFunctionDef = _definition

    def visit_arg(self, node: ast.arg) -> ast.arg:
        node.annotation = None
        return node

    def visit_AnnAssign(self, node: ast.AnnAssign) -> ast.stmt:
        if node.value is None:
            return node
        return ast.copy_location(ast.Assign([node.target], node.value, lineno=node.lineno), node)


def _difference(base: Sequence[str], units: list[_Unit], program: list[_Unit]) -> str:
    """Return the lines in which two programs differ, and the common lines that show where these belong."""
    lines: list[str] = []
    end = 0  # end of the units that have been passed

    def can_be_found(k: int) -> bool:
        """Return whether a unit's first line can be found by its text after the last line that was found."""
        text, start = _bare(base[units[k].first]), units[end - 1].end if end else 0
        return sum(_bare(line) == text for line in base[start:]) == 1

    matcher = SequenceMatcher(
        None, [unit.key for unit in units], [unit.key for unit in program], autojunk=False
    )
    for tag, i, j, k, m in matcher.get_opcodes():
        if tag == "equal":
            continue
        above: list[_Unit] = []  # common lines, written after the new ones
        start = i
        if tag == "insert":
            if not lines and i < len(units) and can_be_found(i):
                above = [units[i]]
            elif not (lines and i == end):
                start = max(end, i - 1)
        if not above:
            while start > end and not can_be_found(start):
                start -= 1
        lines += _marked("  ", base, units[start:i])
        lines += _marked("- ", base, units[i:j])
        lines += [
            "+ " + "    " * u.depth + line for u in program[k:m] for line in u.text.splitlines()
        ]
        lines += _marked("  ", base, above)
        end = j + len(above)
    least = min((_indent(line[2:]) for line in lines), default=0)
    return "\n".join(line[:2] + line[2 + least :] for line in lines)


def _marked(mark: str, base: Sequence[str], units: Sequence[_Unit]) -> list[str]:
    return [mark + line for unit in units for line in base[unit.first : unit.end]]


# --- local names ----------------------------------------------------------------------------------


def _renamed(base: list[_Unit], known: set[str], program: str) -> Iterator[str]:
    """Yield the program, then the program with local names renamed if that makes it more like the base."""
    text = ast.unparse(ast.parse(program))
    yield text
    size = _distance(base, text)
    for (old, new), _ in _pairs(base, _units(text)).most_common():
        if old in known or new not in known or new in _names(text) or old not in _names(text):
            continue
        other = ast.unparse(_Renamed(old, new).visit(ast.parse(text)))
        if (distance := _distance(base, other)) < size:
            text, size = other, distance
    yield text


def _pairs(base: list[_Unit], program: list[_Unit]) -> Counter[tuple[str, str]]:
    """Count the pairs of different names in statements that differ only in their names."""
    found: Counter[tuple[str, str]] = Counter()
    shapes: dict[str, list[list[str]]] = {}
    for unit in base:
        shapes.setdefault(_WORD.sub("_", unit.text), []).append(_WORD.findall(unit.text))
    for unit in program:
        words = _WORD.findall(unit.text)
        for others in shapes.get(_WORD.sub("_", unit.text), ()):
            found.update((old, new) for old, new in zip(words, others, strict=True) if old != new)
    return found


def _distance(base: list[_Unit], program: str) -> int:
    one, two = ([unit.key for unit in units] for units in (base, _units(program)))
    matcher = SequenceMatcher(None, one, two, autojunk=False)
    return len(one) + len(two) - 2 * sum(match.size for match in matcher.get_matching_blocks())


def _names(source: str) -> set[str]:
    nodes = list(ast.walk(ast.parse(source)))
    stored = {n.id for n in nodes if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
    return stored | {n.arg for n in nodes if isinstance(n, ast.arg)}


class _Renamed(ast.NodeTransformer):
    def __init__(self, old: str, new: str) -> None:
        self.old, self.new = old, new

    def visit_Name(self, node: ast.Name) -> ast.Name:
        node.id = self.new if node.id == self.old else node.id
        return node

    def visit_arg(self, node: ast.arg) -> ast.arg:
        node.arg = self.new if node.arg == self.old else node.arg
        return node
