"""Take IPython's own syntax out of a cell: magics, shell lines, help requests.

Called by `listing` for the cells that do not parse as they are. What comes back has the
same number of lines, so that line numbers still are the learner's. IPython's own transformer is
not used: it tokenizes the whole cell again for each line it changes (14.6 s on 400 shell lines
among 5,000 others); this is one pass.

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

_HELP = re.compile(r"%{0,2}[^\W\d][\w*]*(?:\.\w+|\[\d+\])*\?\??\s*;?\s*")
_ASSIGNED = re.compile(r"(?P<names>[^#\"'=!%]+?)=\s*(?:!(?!=)|%{1,2}(?=[A-Za-z]))")
_TIMED = re.compile(r"%time[ \t]+(?!-)")
_AUTOMAGIC = re.compile(r"(?:pip|conda|mamba|cd|ls|cat|cp|mv|mkdir|rm)(?:[ \t].*)?")
_STORED_CELL = "get_ipython().run_cell_magic("
_STORED_TIME = re.compile(r"get_ipython\(\)\.run_line_magic\('time', (?P<text>(['\"]).*\2)\)")

# What matters for finding where a logical line ends. Possessive (`*+`), so that no input makes it
# go back; never around a group, which Python gets wrong up to 3.11.4. A string without an end runs to
# the line's end, or for triple quotes to the cell's.
_TOKEN = re.compile(
    r'"""[^"\\]*+(?:(?:\\.|"(?!""))[^"\\]*+)*(?:"""|\Z)'
    r"|'''[^'\\]*+(?:(?:\\.|'(?!''))[^'\\]*+)*(?:'''|\Z)"
    r'|"[^"\\\n]*+(?:\\.[^"\\\n]*+)*"?'
    r"|'[^'\\\n]*+(?:\\.[^'\\\n]*+)*'?"
    r"|\#[^\n]*+|\\\n|[()\[\]{}]|\n",
    re.DOTALL,
)


def strip_magics(source: str) -> str:
    """Return `source` as plain Python with the same lines. Takes time linear in its length."""
    text, blank_lines = _without_cell_magic(_as_typed(source))
    return "\n" * blank_lines + _without_line_magics(_dedented(text))


def has_stored_magics(source: str) -> bool:
    """Tell whether `source` is Python only because IPython's history made it so (`In`)."""
    return source.startswith(_STORED_CELL) or _STORED_TIME.search(source) is not None


def _as_typed(source: str) -> str:
    """Undo what IPython's history stores in place of a `%%magic` cell."""
    if not source.startswith(_STORED_CELL):
        return source
    try:
        call = ast.parse(source, mode="eval").body
    except SyntaxError:
        return source
    arguments = call.args if isinstance(call, ast.Call) else []
    # name, line, cell: anything else was not made by IPython
    parts = [part.value for part in arguments if isinstance(part, ast.Constant)]
    if len(parts) != 3:
        return source
    return "%%{} {}\n{}".format(*map(str, parts))


def _without_cell_magic(source: str) -> tuple[str, int]:
    """Return (the Python that remains, how many lines were taken off its top)."""
    taken = 0
    lines = source.split("\n")
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


def _dedented(source: str) -> str:
    """Take the first line's indentation off all lines that have it, as IPython does."""
    indent = source[: len(source) - len(source.lstrip(" \t"))]
    if not indent:
        return source
    return "\n".join(line.removeprefix(indent) for line in source.split("\n"))


def _without_line_magics(source: str) -> str:
    source += "\n"
    if len(lines := source.split("\n")) == 2 and _AUTOMAGIC.fullmatch(lines[0]):
        return "pass"  # IPython takes a lone `pip install x` for `%pip install x`
    pieces: list[str] = []
    position = 0
    while position < len(source):
        line_end = source.index("\n", position)
        line = source[position:line_end]
        # asked only at the start of a logical line: within a string or brackets `%` is Python's
        replaced = _replaced(line)
        if replaced is None:
            end = _logical_end(source, position)
            pieces.append(source[position:end])
        else:
            end = _escape_end(source, position)
            pieces.append(replaced + "\n" * source.count("\n", position, end))
        position = end
    return "".join(pieces)[:-1]


def _replaced(line: str) -> str | None:
    """What stands for a logical line that begins with `line`; None if it is Python."""
    code = line.lstrip(" \t")
    indent = line[: len(line) - len(code)]
    if timed := _TIMED.match(code):
        return indent + code[timed.end() :]
    if stored := _STORED_TIME.fullmatch(code):
        return indent + str(ast.literal_eval(stored["text"]))
    if code.startswith(("%", "!", "?", "/", ",", ";")) or _HELP.fullmatch(code):
        return indent + "pass"
    if assigned := _ASSIGNED.match(code):
        return f"{indent}{assigned['names']}= get_ipython()"
    return None


def _escape_end(source: str, position: int) -> int:
    """The end of a magic or shell line: a backslash at a line's end goes on with the next line."""
    end = source.index("\n", position)
    while source[end - 1] == "\\" and end + 1 < len(source):
        end = source.index("\n", end + 1)
    return end + 1


def _logical_end(source: str, position: int) -> int:
    """The end of a Python line, with the lines that its brackets and strings draw in."""
    depth = 0
    while token := _TOKEN.search(source, position):
        position = token.end()
        text = token[0]
        if text in "([{":
            depth += 1
        elif text in ")]}":
            depth = max(0, depth - 1)  # one bracket too many must not hide the lines below
        elif text == "\n" and depth == 0:
            return position
    return len(source)
