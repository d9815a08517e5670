"""From the statements of a closure to one source text, checked as far as that goes unrun.

Called by `build`.
"""

from __future__ import annotations
import __future__

import ast
import re
import warnings
from collections.abc import Iterable, Iterator

from helpers.answers.data import Answer, Origin, Problem, Where
from helpers.answers.listing import Listing, Statement

MAX_SOURCE_CHARS = 200_000
_FUTURE = re.compile("__future__")


def compose(name: str, statements: Iterable[Statement]) -> Answer:
    """Join the statements, in the order given, and keep where each was written."""
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
    """Leave out `import torch` when it still holds from above: many cells begin with it."""
    imported: dict[str, set[str]] = {}
    for statement in statements:
        names = statement.names
        if statement.is_import:
            bound = names.binds | names.maybe
            if bound and all(statement.text in imported.get(name, ()) for name in bound):
                continue
            for name in bound:
                kept = imported.get(name, set()) if name in names.maybe else set()
                imported[name] = kept | {statement.text}
        else:
            for name in names.binds | names.maybe:
                imported.pop(name, None)
        yield statement


def future_imports(listing: Listing) -> list[Statement]:
    """Imports from __future__, each once: in a kernel they hold for all cells after them."""
    found: dict[str, Statement] = {}
    for statement in listing.matching(_FUTURE):
        node = statement.node
        if not isinstance(node, ast.ImportFrom) or node.module != "__future__":
            continue
        if all(alias.name in __future__.all_feature_names for alias in node.names):
            found.setdefault(statement.text, statement)
    return list(found.values())


def sound(answer: Answer, where: Where) -> Answer | Problem:
    """Reject what is too large, and what only the compiler sees: `return` outside a function."""
    if len(answer.source) > MAX_SOURCE_CHARS:
        message = (
            f"`{answer.name}` and what it needs are {len(answer.source):,} characters long; "
            f"{MAX_SOURCE_CHARS:,} are allowed. Leave out data that is written into the cells."
        )
        return Problem("too_large", message, answer.name, answer.notes)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            compile(answer.source, "<answer>", "exec", dont_inherit=True)
    except (SyntaxError, ValueError) as error:
        line = error.lineno if isinstance(error, SyntaxError) else None
        place = answer.place(line or 0)
        at = f"{where(place[0])}, line {place[1]}" if place else f"`{answer.name}`"
        reason = error.msg if isinstance(error, SyntaxError) else str(error)
        return Problem("syntax_error", f"{at}: {reason}.", answer.name, answer.notes)
    return answer
