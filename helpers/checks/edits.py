"""Represent a program as an edit of a base program, which contains only the differing lines.

    - p.grad /= dist.get_world_size()       a line of the base missing from the program
    + p.grad *= 2                           a line in its place, or after the previous line of the edit
      dist.all_reduce(p.grad)               an unchanged line that shows where a `+` belongs

Lines of the base are searched in order, and the indentation of the whole edit does not matter. Each of these
lines must directly follow the previous one, or be the only line with its text below it. A comment at a line's
end may be left out. So an edit that fits in two places is an error, and so is an edit that no longer fits
because the base has changed.
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

COMMON_IMPORTS = {"import torch", "import torch.distributed as dist"}
_LINE_MARKS = ("- ", "+ ", "  ")
_COMMENT_PATTERN = re.compile(r"  #\s.*$")
_WORD_PATTERN = re.compile(r"[A-Za-z_]\w*")


def is_edit(text: str) -> bool:
    """Return whether this is an edit. Complete programs never begin with an indented line or with a sign."""
    return text.lstrip("\n").startswith(("-", "+", " "))


def apply_edit(base: Sequence[str], edit: str) -> list[str]:
    """Return the lines of the base after removing and adding the edit's lines.

    Raises:
        ValueError: A line of the edit has no mark, or does not occur in the base exactly once.
    """
    result: list[str] = []
    start = indent_change = 0
    new_lines: list[str] = []
    for line in edit.splitlines():
        if not line.strip():
            continue
        mark, text = line[:2], line[2:]
        if mark.rstrip() == "+":
            new_lines.append(text)
            continue
        if mark not in _LINE_MARKS:
            raise ValueError(f"{line!r} does not begin with `- `, `+ ` or two spaces")
        place, count = _find_line(base, text, start)
        if count != 1:
            raise ValueError(f"`{text.strip()}` {_explain_mismatch(count, start)}")
        unchanged, change = base[start:place], _indent_width(base[place]) - _indent_width(text)
        # New lines follow the last found line of the base. New lines above the first found line of the base
        # are inserted directly before it.
        if start or result:
            result += [*_shift_lines(new_lines, indent_change), *unchanged]
        else:
            result += [*unchanged, *_shift_lines(new_lines, change)]
        new_lines, indent_change, start = [], change, place + 1
        if mark == "  ":
            result.append(base[place])
    if not result and not start:
        raise ValueError("it contains no line of the program to be changed")
    return [*result, *_shift_lines(new_lines, indent_change), *base[start:]]


def _find_line(base: Sequence[str], text: str, start: int) -> tuple[int, int]:
    """Return the position of a line, and the number of places that it could refer to."""
    # A comment at a line's end may be left out. If it is given, it selects one of several lines.
    normalize = str.strip if _COMMENT_PATTERN.search(text) else _normalize_line
    matches = [
        index for index in range(start, len(base)) if normalize(base[index]) == normalize(text)
    ]
    # If the next nonblank line matches, use it, even if more lines match.
    next_line = next((index for index in range(start, len(base)) if base[index].strip()), None)
    if start and matches and matches[0] == next_line:
        return matches[0], 1
    return (matches[0] if matches else -1), len(matches)


def _explain_mismatch(count: int, start: int) -> str:
    position = " below the line before it" if start else ""
    return f"fits in {count} places{position}" if count else f"is not in the program{position}"


def _normalize_line(line: str) -> str:
    """Return a line without its indentation and trailing comment, which do not matter."""
    return _COMMENT_PATTERN.sub("", line).strip()


def _indent_width(text: str) -> int:
    return len(text) - len(text.lstrip())


def _shift_lines(lines: Sequence[str], width: int) -> list[str]:
    return [
        " " * (width + _indent_width(line)) + line.lstrip() if line.strip() else ""
        for line in lines
    ]


# --- the edit that turns one program into another -------------------------------------------------


@dataclass(frozen=True)
class _Statement:
    """One statement, or the head of a block.

    text: its source without comments, in a normalized form. first, end: its lines, counted from 0.
    """

    depth: int
    text: str
    first: int
    end: int

    @property
    def key(self) -> tuple[int, str]:
        return self.depth, self.text


def make_edit(base: Sequence[str], program: str, max_lines: int) -> str:
    """Return the shortest edit found that turns a base into a program, or "" if it exceeds `max_lines` lines.

    Local names count as equal if renaming them makes the edit shorter. Docstrings, comments and types of the
    base are kept, and so are functions and classes of the base that the program does not define.
    """
    best, best_size = "", max_lines + 1
    text = "\n".join(base)
    # Every program has torch and dist. Other imports of the base may stay, whether they are needed or not.
    common_imports = _imports_of(text) | _imports_of(program) & COMMON_IMPORTS
    read_statements = partial(_statements_of, imported=common_imports)
    units = read_statements(text, _defined_names(program))
    for renamed in _rename_candidates(units, _local_names(text), program):
        target = read_statements(renamed)
        edit = _diff_lines(base, units, target)
        lines = len(edit.splitlines())
        if (
            edit
            and lines < best_size
            and _produces(
                base, edit, target, partial(read_statements, only=_defined_names(program))
            )
        ):
            best, best_size = edit, lines
    return best


def _produces(
    base: Sequence[str],
    edit: str,
    target: list[_Statement],
    read_statements: Callable[[str], list[_Statement]],
) -> bool:
    try:
        produced = read_statements("\n".join(apply_edit(base, edit)))
    except (ValueError, SyntaxError):
        return False
    return [unit.key for unit in produced] == [unit.key for unit in target]


def _imports_of(source: str) -> set[str]:
    imports = (
        node for node in ast.parse(source).body if isinstance(node, (ast.Import, ast.ImportFrom))
    )
    return {ast.unparse(node) for node in imports}


def _defined_names(program: str) -> set[str]:
    return {node.name for node in ast.parse(program).body if isinstance(node, DEFINITIONS)}


def _statements_of(
    source: str, only: Collection[str] = (), imported: Collection[str] = ()
) -> list[_Statement]:
    """Return the statements of a program.

    only: the names of the functions and classes to include. imported: imports to leave out.
    """
    tree = _RemoveDocstringsAndTypes().visit(ast.parse(source))
    body = [
        node
        for node in tree.body
        if not (isinstance(node, (ast.Import, ast.ImportFrom)) and ast.unparse(node) in imported)
        and not (only and isinstance(node, DEFINITIONS) and node.name not in only)
    ]
    return [*_block_statements(body, 0, source.splitlines(), _statement_lines(source))]


def _block_statements(
    body: Sequence[ast.stmt], depth: int, lines: list[str], ends: dict[int, tuple[int, int]]
) -> Iterator[_Statement]:
    def unit(text: str, line: int) -> _Statement:
        first, last = ends.get(line, (line, line))
        return _Statement(depth, text, first - 1, last)

    for node in body:
        for decorator in getattr(node, "decorator_list", ()):
            yield unit("@" + ast.unparse(decorator), decorator.lineno)
        parts = _blocks_of(node)
        if not parts:
            yield unit(ast.unparse(node), node.lineno)
        for head, line, inner in parts:
            yield unit(head, line or _head_line(inner[0], head, lines))
            yield from _block_statements(inner, depth + 1, lines, ends)


def _blocks_of(node: ast.stmt) -> list[tuple[str, int, list[ast.stmt]]]:
    """Return the blocks of a compound statement: head, line (0 if unknown), statements."""
    if not hasattr(node, "body"):
        return []
    blocks = [(_head_text(node), node.lineno, list(node.body))]
    for handler in getattr(node, "handlers", ()):
        blocks.append((_head_text(handler), handler.lineno, handler.body))
    else_body = list(getattr(node, "orelse", ()))
    while (
        isinstance(node, ast.If)
        and len(else_body) == 1
        and isinstance(inner := else_body[0], ast.If)
    ):
        blocks.append(("el" + _head_text(inner), inner.lineno, inner.body))
        else_body = inner.orelse
    if else_body:
        blocks.append(("else:", 0, else_body))
    if getattr(node, "finalbody", None):
        blocks.append(("finally:", 0, node.finalbody))  # type: ignore[attr-defined]
    return blocks


def _head_text(node: ast.AST) -> str:
    return next(line for line in ast.unparse(node).splitlines() if line and line[0] != "@")


def _head_line(node: ast.stmt, head: str, lines: list[str]) -> int:
    first = min([node.lineno, *(d.lineno for d in getattr(node, "decorator_list", ()))])
    above = (k for k in range(first - 1, 0, -1) if lines[k - 1].strip().startswith(head))
    return next(above, first)


def _statement_lines(source: str) -> dict[int, tuple[int, int]]:
    """Return {line: (first, last line of its statement)}."""
    spans: dict[int, tuple[int, int]] = {}
    first = 0
    for token in tokenize.generate_tokens(StringIO(source).readline):
        if token.type in (tokenize.NL, tokenize.COMMENT, tokenize.INDENT, tokenize.DEDENT):
            continue
        first = first or token.start[0]
        if token.type == tokenize.NEWLINE:
            last = token.start[0]
            spans |= dict.fromkeys(range(first, last + 1), (first, last))
            first = 0
    return spans


class _RemoveDocstringsAndTypes(ast.NodeTransformer):
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


def _diff_lines(base: Sequence[str], units: list[_Statement], program: list[_Statement]) -> str:
    """Return the lines in which two programs differ, and the common lines that show their positions."""
    lines: list[str] = []
    end = 0  # end of the processed units

    def first_line_is_unique(k: int) -> bool:
        """Return whether a unit's first line can be found by its text after the last found line."""
        text, start = _normalize_line(base[units[k].first]), units[end - 1].end if end else 0
        return sum(_normalize_line(line) == text for line in base[start:]) == 1

    matcher = SequenceMatcher(
        None, [unit.key for unit in units], [unit.key for unit in program], autojunk=False
    )
    for tag, i, j, k, m in matcher.get_opcodes():
        if tag == "equal":
            continue
        following: list[_Statement] = []  # common lines, written after the new ones
        start = i
        if tag == "insert":
            if not lines and i < len(units) and first_line_is_unique(i):
                following = [units[i]]
            elif not (lines and i == end):
                start = max(end, i - 1)
        if not following:
            while start > end and not first_line_is_unique(start):
                start -= 1
        lines += _mark_lines("  ", base, units[start:i])
        lines += _mark_lines("- ", base, units[i:j])
        lines += [
            "+ " + "    " * unit.depth + line
            for unit in program[k:m]
            for line in unit.text.splitlines()
        ]
        lines += _mark_lines("  ", base, following)
        end = j + len(following)
    min_indent = min((_indent_width(line[2:]) for line in lines), default=0)
    return "\n".join(line[:2] + line[2 + min_indent :] for line in lines)


def _mark_lines(mark: str, base: Sequence[str], units: Sequence[_Statement]) -> list[str]:
    return [mark + line for unit in units for line in base[unit.first : unit.end]]


# --- local names ----------------------------------------------------------------------------------


def _rename_candidates(base: list[_Statement], base_names: set[str], program: str) -> Iterator[str]:
    """Yield the program, then a version with renamed local names if renaming brings it closer to the base."""
    text = ast.unparse(ast.parse(program))
    yield text
    best_distance = _edit_distance(base, text)
    for (old, new), _ in _name_pairs(base, _statements_of(text)).most_common():
        if (
            old in base_names
            or new not in base_names
            or new in _local_names(text)
            or old not in _local_names(text)
        ):
            continue
        other = ast.unparse(_RenameVariable(old, new).visit(ast.parse(text)))
        if (distance := _edit_distance(base, other)) < best_distance:
            text, best_distance = other, distance
    yield text


def _name_pairs(base: list[_Statement], program: list[_Statement]) -> Counter[tuple[str, str]]:
    """Count the pairs of different names in statements that differ only in their names."""
    pairs: Counter[tuple[str, str]] = Counter()
    shapes: dict[str, list[list[str]]] = {}
    for unit in base:
        shapes.setdefault(_WORD_PATTERN.sub("_", unit.text), []).append(
            _WORD_PATTERN.findall(unit.text)
        )
    for unit in program:
        words = _WORD_PATTERN.findall(unit.text)
        for other_words in shapes.get(_WORD_PATTERN.sub("_", unit.text), ()):
            pairs.update(
                (old, new) for old, new in zip(words, other_words, strict=True) if old != new
            )
    return pairs


def _edit_distance(base: list[_Statement], program: str) -> int:
    base_keys, program_keys = (
        [unit.key for unit in units] for units in (base, _statements_of(program))
    )
    matcher = SequenceMatcher(None, base_keys, program_keys, autojunk=False)
    return (
        len(base_keys)
        + len(program_keys)
        - 2 * sum(match.size for match in matcher.get_matching_blocks())
    )


def _local_names(source: str) -> set[str]:
    nodes = list(ast.walk(ast.parse(source)))
    stored = {
        node.id for node in nodes if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)
    }
    return stored | {node.arg for node in nodes if isinstance(node, ast.arg)}


class _RenameVariable(ast.NodeTransformer):
    def __init__(self, old: str, new: str) -> None:
        self.old, self.new = old, new

    def visit_Name(self, node: ast.Name) -> ast.Name:
        node.id = self.new if node.id == self.old else node.id
        return node

    def visit_arg(self, node: ast.arg) -> ast.arg:
        node.arg = self.new if node.arg == self.old else node.arg
        return node
