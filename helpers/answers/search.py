"""Which cells need not be parsed: those in which a name is at most used.

Asked by `listing.Listing`. Parsing 10,000 lines takes a third of a second, more than a whole
check; looking at the lines that hold a name takes milliseconds. A cell that is passed over wrongly
would be missing from an answer, so whatever is in doubt may bind.
"""

from __future__ import annotations

import re

from helpers.answers.magics import has_stored_magics

_MAX_LINE = 1_000

_BINDING_WORD = re.compile(
    r"\b(?:import|as|del|case|setattr|delattr)\b|\b(?:def|class|type)\s+$"
    r"|\bfor\b(?:(?!\bin\b).)*$"
)
_AT_START = re.compile(r"(?:^|[;:]|%time)[\s(\[*@]*$")
_ALONE_AFTER = re.compile(r"[\s,\w\])*]*(?:#.*)?\\?$")
_BRACKET_OR_ASSIGNMENT = re.compile(r"[()\[\]{}]|(?<![=!<>])=(?!=)|<<=|>>=")
_BRANCHING = re.compile(r"^(?:if|for|while|with|try|match|async)\b|\A\s*\n?[ \t]", re.MULTILINE)


def may_bind(name: str, text: str) -> bool:
    """Tell whether a cell with this text may bind `name` or change the object of that name."""
    position = text.find(name)
    if position < 0:
        return False
    if has_stored_magics(text):
        return True
    flat = _BRANCHING.search(text) is None
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
    """`flat`: the cell has no top-level branches, so an indented `xs.append(1)` is a function's."""
    if _is_word_character(before[-1:]) or _is_word_character(after[:1]):
        return False  # part of a longer name
    if _BINDING_WORD.search(before) or ("=" in after and _is_assigned(after)):
        return True
    if flat and before[:1].isspace() and after[:1] in (".", "[", "("):
        return False
    return _AT_START.search(before) is not None or _ALONE_AFTER.fullmatch(after) is not None


def _is_word_character(character: str) -> bool:
    return character.isalnum() or character == "_"


def _is_assigned(after: str) -> bool:
    """Whether an assignment's `=`, not a keyword argument's, follows on the line."""
    depth = 0
    for found in _BRACKET_OR_ASSIGNMENT.finditer(after):
        if found[0] in "([{":
            depth += 1
        elif found[0] in ")]}":
            depth -= 1
        elif depth <= 0:
            return True
    return False
