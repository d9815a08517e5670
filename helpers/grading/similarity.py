"""Answers that are nearly the same: a place to look, not a verdict. Short right answers often are alike.

`command` hands in the records that count: of several copies of a notebook one.

records --normalized--> OUT/answers/EXERCISE/LEARNER/EXERCISE.py    which JPlag and compare50 take
        `--> fingerprints --> groups of learners, for the instructor's page
"""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Iterable, Sequence
from itertools import combinations
from pathlib import Path

from helpers.grading.cache import write_whole, writing
from helpers.grading.record import Record
from helpers.grading.reports import Similar
from helpers.grading.reports.slugs import page_names

# From this share of common pieces on, two answers are listed.
ALIKE = 0.9
_PIECE = 5
# Pieces that an answer must have: below that, everybody writes the same.
_FEWEST = 60
_MOST_NODES = 20_000


def write_answers(records: Sequence[Record], out: Path) -> None:
    """Write each answer, normalized, where tools that compare programs expect them.

    Those of earlier runs go: their files may no longer be those that count.
    """
    for old in (out / "answers").glob("*/*/*.py"):
        with writing(old):
            old.unlink()
    names = page_names(record.learner for record in records)
    for record in records:
        learner = Path(names[record.learner]).stem
        for exercise in record.exercises:
            if text := normalized(exercise.answer):
                path = out / "answers" / exercise.name / learner / f"{exercise.name}.py"
                write_whole(path, text.encode("utf-8", "replace"))


def similar_answers(records: Sequence[Record]) -> list[Similar]:
    """Return the groups of learners whose answers to an exercise are nearly the same."""
    by_exercise: dict[str, dict[str, frozenset[str]]] = defaultdict(dict)
    for record in records:
        for exercise in record.exercises:
            pieces = fingerprint(exercise.answer)
            if len(pieces) >= _FEWEST:
                by_exercise[exercise.name][record.learner] = pieces
    found = []
    for name, prints in by_exercise.items():
        pairs = {
            (one, other): share
            for one, other in combinations(prints, 2)
            if (share := overlap(prints[one], prints[other])) >= ALIKE
        }
        for group in _joined(pairs):
            inside = [share for pair, share in pairs.items() if set(pair) <= group]
            found.append(Similar(name, tuple(sorted(group)), min(inside)))
    return found


def normalized(source: str) -> str:
    """Return an answer without comments, docstrings and the author's layout; "" if it cannot be read."""
    try:
        tree = ast.parse(source)
        for node in ast.walk(tree):
            body = getattr(node, "body", None)
            if isinstance(body, list) and body and _is_docstring(body[0]):
                node.body = body[1:] or [ast.Pass()]  # type: ignore[attr-defined]
        return ast.unparse(ast.fix_missing_locations(tree)) + "\n" if source.strip() else ""
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return ""


def fingerprint(source: str) -> frozenset[str]:
    """Return the pieces of an answer's structure; names that its author chose leave no trace."""
    try:
        nodes = list(ast.walk(ast.parse(normalized(source))))[:_MOST_NODES]
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return frozenset()
    words = [_word(node) for node in nodes]
    pieces = (" ".join(words[i : i + _PIECE]) for i in range(len(words) - _PIECE + 1))
    counts: dict[str, int] = defaultdict(int)
    numbered = []
    for piece in pieces:
        counts[piece] += 1
        numbered.append(f"{piece} {counts[piece]}")
    return frozenset(numbered)


def overlap(one: frozenset[str], other: frozenset[str]) -> float:
    """Return the share of common pieces, from 0 to 1 (Jaccard's index)."""
    return len(one & other) / len(one | other) if one or other else 0.0


def _is_docstring(node: ast.stmt) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)


def _word(node: ast.AST) -> str:
    """Name a node by its kind; calls of torch by their name, constants by their value."""
    if isinstance(node, ast.Attribute):
        return f".{node.attr}"
    if isinstance(node, ast.Constant):
        return repr(node.value)[:40]
    return type(node).__name__


def _joined(pairs: Iterable[tuple[str, str]]) -> list[set[str]]:
    groups: list[set[str]] = []
    for pair in pairs:
        touched = [group for group in groups if group & set(pair)]
        groups = [group for group in groups if group not in touched]
        groups.append(set(pair).union(*touched))
    return groups
