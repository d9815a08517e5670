"""Answers that are nearly the same: a place to look, not a verdict. Short right answers often are alike.

`command` hands in the records that count: of several copies of a notebook one.

records --normalized--> OUT/answers/EXERCISE/LEARNER/EXERCISE.py    which JPlag and compare50 take
        `--> fingerprints --> pairs of learners, for the instructor's pages
"""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import chain, combinations_with_replacement, islice, product
from pathlib import Path

from helpers.answers.build import Answer
from helpers.answers.reader import UnreadableNotebook, read_answers
from helpers.checks.headings import headings
from helpers.checks.result import Outcome
from helpers.grading.cache import write_whole, writing
from helpers.grading.record import Record
from helpers.grading.reports import Alike, Similar
from helpers.grading.reports.slugs import page_names

# From this share of common pieces on, two answers are listed.
ALIKE = 0.9
_PIECE = 5
# Pieces that an answer must have: below that, everybody writes the same.
_FEWEST = 60
_MOST_NODES = 20_000


def reference_answers(notebooks: Iterable[str], folder: Path | None) -> dict[str, str]:
    """Return the source of each exercise's reference solution, as far as this copy of the course has them."""
    found: dict[str, str] = {}
    for notebook in notebooks if folder else ():
        names = [each.name for each in headings().values() if each.notebook == notebook]
        with suppress(UnreadableNotebook):
            answers = read_answers(Path(folder or "") / f"{notebook}.ipynb", names)
            found |= {n: each.source for n, each in answers.items() if isinstance(each, Answer)}
    return found


def write_answers(records: Sequence[Record], out: Path) -> None:
    """Write each answer, normalized, where tools that compare programs expect them.

    Those of earlier runs go: their files may no longer be those that count.
    """
    for old in (out / "answers").glob("*/*/*.py"):
        with writing(old):
            old.unlink()
        with suppress(OSError):  # something of the instructor's is in it
            old.parent.rmdir()
    names = page_names(record.learner for record in records)
    for record in records:
        learner = Path(names[record.learner]).stem
        for exercise in record.exercises:
            if text := normalized(exercise.answer):
                path = out / "answers" / exercise.name / learner / f"{exercise.name}.py"
                write_whole(path, text.encode("utf-8", "replace"))


def similar_answers(
    records: Sequence[Record], expected: Mapping[str, str] | None = None
) -> list[Similar]:
    """Return the pairs of learners whose answers to some exercises are nearly the same, the rarest first.

    expected: the reference solution of each exercise. An answer that is like it says nothing about who wrote
    it; nor does a stub that nobody has changed. What many have written alike counts little.
    """
    by_exercise: dict[str, dict[frozenset[str], list[str]]] = defaultdict(lambda: defaultdict(list))
    references = {name: fingerprint(source) for name, source in (expected or {}).items()}
    for record in records:
        for exercise in record.exercises:
            pieces = fingerprint(exercise.answer)
            if exercise.outcome == Outcome.NOT_ATTEMPTED.value or len(pieces) < _FEWEST:
                continue
            if overlap(pieces, references.get(exercise.name, frozenset())) < ALIKE:
                by_exercise[exercise.name][pieces].append(record.learner)
    found: dict[tuple[str, str], list[Alike]] = defaultdict(list)
    for name, prints in by_exercise.items():
        for pair, alike in _alike(name, prints):
            found[pair].append(alike)
    pairs = [Similar(pair, tuple(sorted(each, key=_rarest))) for pair, each in found.items()]
    return sorted(pairs, key=lambda pair: (-sum(1 / x.learners for x in pair.alike), pair.learners))


def _alike(
    name: str, prints: Mapping[frozenset[str], Sequence[str]]
) -> Iterator[tuple[tuple[str, str], Alike]]:
    """Return the pairs of learners with nearly the same answers to one exercise."""
    pairs: dict[tuple[str, str], float] = {}
    # Answers with the same pieces are compared once, however many learners have handed them in.
    for one, other in combinations_with_replacement(prints, 2):
        if (share := overlap(one, other)) >= ALIKE:
            for first, second in product(prints[one], prints[other]):
                if first != second:
                    pairs[min(first, second), max(first, second)] = share
    count: dict[str, int] = defaultdict(int)
    for learner in chain.from_iterable(pairs):
        count[learner] += 1
    for (first, second), share in pairs.items():
        yield (first, second), Alike(name, share, 1 + max(count[first], count[second]))


def _rarest(alike: Alike) -> tuple[int, str]:
    return alike.learners, alike.exercise


def normalized(source: str) -> str:
    """Return an answer without comments, docstrings and the author's layout; "" if it cannot be read."""
    tree = _tree(source)
    try:
        return ast.unparse(ast.fix_missing_locations(tree)) + "\n" if tree and tree.body else ""
    except (ValueError, RecursionError, MemoryError):
        return ""


def _tree(source: str) -> ast.Module | None:
    """Parse an answer without its docstrings; None if it cannot be read."""
    try:
        tree = ast.parse(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None
    for node in ast.walk(tree):
        body = getattr(node, "body", None)
        if isinstance(body, list) and body and _is_docstring(body[0]):
            node.body = body[1:] or [ast.Pass()]  # type: ignore[attr-defined]
    return tree


def fingerprint(source: str) -> frozenset[str]:
    """Return the pieces of an answer's structure; names that its author chose leave no trace."""
    tree = _tree(source)
    if tree is None:
        return frozenset()
    nodes = list(islice(ast.walk(tree), _MOST_NODES))
    words = [_word(node) for node in nodes]
    pieces = (" ".join(words[i : i + _PIECE]) for i in range(len(words) - _PIECE + 1))
    counts: dict[str, int] = defaultdict(int)
    numbered = []
    for piece in pieces:
        counts[piece] += 1
        numbered.append(f"{piece} {counts[piece]}")
    return frozenset(numbered)


def overlap(one: frozenset[str], other: frozenset[str]) -> float:
    """Return the share of common pieces, from 0 to 1 (Jaccard's index); 0 where sizes rule out `ALIKE`."""
    if min(len(one), len(other)) < ALIKE * max(len(one), len(other)):
        return 0.0
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
