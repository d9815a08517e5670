"""Remove IPython's special syntax from a cell: magics, shell lines, help requests.

`listing` calls it for cells that are not valid Python. The result has the same number of lines, so that line
numbers are still the learner's. IPython's transformer is not used, because it tokenizes the whole cell again
for each line that it changes (14.6 s for 400 shell lines among 5,000 others). This module needs one pass.

| in the cell                               | becomes                                            |
|-------------------------------------------|----------------------------------------------------|
| `%%time`, `%%capture`, `%%after` and the like | an empty line; the rest is Python             |
| any other `%%magic` (`%%ranks`, `%%bash`) | nothing: the cell is not this kernel's Python      |
| `%time x = f()`                           | `x = f()`                                          |
| `%magic`, `!cmd`, `?name`, `name?`, `/f x` | `pass`                                            |
| `x = !cmd`, `x = %magic`                  | `x = get_ipython()`: only the kernel has the value |
"""

from __future__ import annotations

import ast
import re

_PYTHON_BODY = frozenset({"after", "capture", "prun", "time", "timeit"})

_COMMENT_PATTERN = re.compile(r"\s*(?:#|$)")
_HELP_PATTERN = re.compile(r"%{0,2}[^\W\d][\w*]*(?:\.\w+|\[\d+\])*\?\??\s*;?\s*")
_ASSIGNED_PATTERN = re.compile(r"(?P<names>[^#\"'=!%]+?)=\s*(?:!(?!=)|%{1,2}(?=[A-Za-z]))")
_TIMED_PATTERN = re.compile(r"%time[ \t]+(?!-)")
_AUTOMAGIC_PATTERN = re.compile(r"(?:pip|conda|mamba|cd|ls|cat|cp|mv|mkdir|rm)(?:[ \t].*)?")
_CONVERTED_CELL_MAGIC = "get_ipython().run_cell_magic("
_CONVERTED_TIME_PATTERN = re.compile(
    r"get_ipython\(\)\.run_line_magic\('time', (?P<text>(['\"]).*\2)\)"
)

# The tokens that determine where a logical line ends. Quantifiers are possessive (`*+`), so that no input
# causes backtracking, but never around a group, because Python up to 3.11.4 handles that wrongly. An
# unterminated string ends with its line or, if triple-quoted, with the cell.
_TOKEN_PATTERN = re.compile(
    r'"""[^"\\]*+(?:(?:\\.|"(?!""))[^"\\]*+)*(?:"""|\Z)'
    r"|'''[^'\\]*+(?:(?:\\.|'(?!''))[^'\\]*+)*(?:'''|\Z)"
    r'|"[^"\\\n]*+(?:\\.[^"\\\n]*+)*"?'
    r"|'[^'\\\n]*+(?:\\.[^'\\\n]*+)*'?"
    r"|\#[^\n]*+|\\\n|[()\[\]{}]|\n",
    re.DOTALL,
)


def strip_magics(source: str) -> str:
    """Return `source` as plain Python with the same lines, in time linear in its length."""
    text, blank_lines = _without_cell_magic(_restore_cell_magic(source))
    return "\n" * blank_lines + _without_line_magics(_dedent(text))


def has_stored_magics(source: str) -> bool:
    """Return whether `source` is valid Python only because IPython's history translated it (`In`)."""
    return (
        source.startswith(_CONVERTED_CELL_MAGIC)
        or _CONVERTED_TIME_PATTERN.search(source) is not None
    )


def _restore_cell_magic(source: str) -> str:
    """Return the original text of a `%%magic` cell, which is stored as a call in IPython's history."""
    if not source.startswith(_CONVERTED_CELL_MAGIC):
        return source
    try:
        call = ast.parse(source, mode="eval").body
    except SyntaxError:
        return source
    arguments = call.args if isinstance(call, ast.Call) else []
    # name, line, cell: calls with different arguments are not from IPython
    parts = [part.value for part in arguments if isinstance(part, ast.Constant)]
    if len(parts) != 3:
        return source
    return "%%{} {}\n{}".format(*map(str, parts))


def _without_cell_magic(source: str) -> tuple[str, int]:
    """Return (the remaining Python code, the number of lines removed at its top)."""
    taken = 0
    lines = source.split("\n")
    if _is_foreign_cell(lines):
        return "", 0
    while taken < len(lines):
        line = lines[taken].strip()
        if line and not line.startswith("%%"):
            break
        if line and not line.endswith("?"):
            words = line[2:].split(maxsplit=1)
            if not words or words[0] not in _PYTHON_BODY:
                return "", 0
        taken += 1
    if taken == len(lines):
        return "", taken - 1
    return "\n".join(lines[taken:]), taken


def _is_foreign_cell(lines: list[str]) -> bool:
    """Return whether a comment, such as Colab's `#@title`, precedes a `%%magic` whose text is not Python."""
    first = next((line for line in lines if not _COMMENT_PATTERN.match(line)), "").lstrip()
    words = first[2:].split(maxsplit=1)
    is_below_comment = lines[0].lstrip().startswith("#")
    return is_below_comment and first[:2] == "%%" and bool(words) and words[0] not in _PYTHON_BODY


def _dedent(source: str) -> str:
    """Like IPython, remove the first line's indentation from all lines that have it."""
    indent = source[: len(source) - len(source.lstrip(" \t"))]
    if not indent:
        return source
    return "\n".join(line.removeprefix(indent) for line in source.split("\n"))


def _without_line_magics(source: str) -> str:
    source += "\n"
    if len(lines := source.split("\n")) == 2 and _AUTOMAGIC_PATTERN.fullmatch(lines[0]):
        return "pass"  # IPython reads the line `pip install x` as `%pip install x`
    pieces: list[str] = []
    position = 0
    while position < len(source):
        line_end = source.index("\n", position)
        line = source[position:line_end]
        # check only the start of a logical line, because inside strings and brackets `%` is Python
        replaced = _replacement(line)
        if replaced is None:
            end = _logical_end(source, position)
            pieces.append(source[position:end])
        else:
            end = _escape_end(source, position)
            pieces.append(replaced + "\n" * source.count("\n", position, end))
        position = end
    return "".join(pieces)[:-1]


def _replacement(line: str) -> str | None:
    """Return the replacement of a logical line that begins with `line`, or None if it is Python."""
    code = line.lstrip(" \t")
    indent = line[: len(line) - len(code)]
    if timed := _TIMED_PATTERN.match(code):
        return indent + code[timed.end() :]
    if stored := _CONVERTED_TIME_PATTERN.fullmatch(code):
        return indent + str(ast.literal_eval(stored["text"]))
    if code.startswith(("%", "!", "?", "/", ",", ";")) or _HELP_PATTERN.fullmatch(code):
        return indent + "pass"
    if assigned := _ASSIGNED_PATTERN.match(code):
        return f"{indent}{assigned['names']}= get_ipython()"
    return None


def _escape_end(source: str, position: int) -> int:
    """Return the end of a magic or shell line. A backslash at a line's end continues it."""
    end = source.index("\n", position)
    while source[end - 1] == "\\" and end + 1 < len(source):
        end = source.index("\n", end + 1)
    return end + 1


def _logical_end(source: str, position: int) -> int:
    """Return the end of a Python line, including all lines spanned by its brackets and strings."""
    depth = 0
    while token := _TOKEN_PATTERN.search(source, position):
        position = token.end()
        text = token[0]
        if text in "([{":
            depth += 1
        elif text in ")]}":
            depth = max(0, depth - 1)  # an extra closing bracket must not hide the lines below
        elif text == "\n" and depth == 0:
            return position
    return len(source)
