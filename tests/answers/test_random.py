"""Test on random programs that an answer's source returns the same as the function after all cells have run.

The programs redefine, patch, decorate and compute at random, so the result depends on which of several
definitions is used at each place. Each is run as a whole, like in a kernel; programs that fail in that run
are skipped.
"""

from __future__ import annotations

import random
from typing import Any

import pytest

from helpers.answers.build import Answer, build_answer

HEAD = """
a, b, c = 1, 2, 3
xs = [1]
table = {0: 1, 1: 2, 2: 3}
def f(): return a
def g(): return b
def h(): return c
def dec(x): return lambda: x() + 1
class C:
    n = 0
    def m(self): return 7
"""

EXPRESSIONS = [
    "{v}",
    "{v}",
    "{i}",
    "{e} + {e}",
    "{f}()",
    "C.n",
    "C().m()",
    "sum(xs)",
    "table[{i}]",
    "(lambda {v}={e}: {e})()",
    "sum([{v} for {v} in [1, {e}] if {v} < 50])",
]
BODIES = [
    "    return {e}",
    "    {v} = {e}\n    return {e}",
    "    def inner():\n        return {e}\n    return inner() + {e}",
    "    for {v} in [1, 2]:\n        pass\n    return {e}",
]
SIMPLE = [
    "{v} = {e}",
    "{v} += {e}",
    "{v}, {v} = {e}, {e}",
    "xs.append({e})",
    "xs = [{e}]",
    "table[{i}] = {e}",
    "C.n = {e}",
    "C.m = lambda self: {e}",
]
STATEMENTS = [
    *SIMPLE,
    "def {f}({v}={e}):\n{body}",
    "def {f}():\n{body}",
    "@dec\ndef {f}():\n{body}",
    "{f} = dec({f})",
    "def dec(x):\n    y = {e}\n    return lambda: y + x() + {e}",
    "class C:\n    n = {e}\n    {v} = {e}\n    k = {e}\n    def m(self): return {e} + self.k",
    "if {e} % 2:\n    {s}\nelse:\n    {s}",
    "for {v} in [1, {e}]:\n    {s}\n    {s}",
    "try:\n    {s}\nexcept NameError:\n    {s}",
]


class Writer:
    """Fills the templates above at random, always in the same way for a given seed."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)

    def program(self) -> list[str]:
        return [HEAD, *(self.fill(STATEMENTS, 0) for _ in range(self.random.randint(3, 12)))]

    def fill(self, templates: list[str], depth: int) -> str:
        text = self.random.choice(templates)
        makers: dict[str, Any] = {
            "{v}": lambda: self.random.choice("abc"),
            "{f}": lambda: self.random.choice("fgh"),
            "{i}": lambda: str(self.random.randrange(3)),
            "{e}": lambda: self.fill(EXPRESSIONS if depth < 3 else EXPRESSIONS[:3], depth + 1),
            "{s}": lambda: self.fill(SIMPLE, depth),
            "{body}": lambda: self.fill(BODIES, depth),
        }
        for mark, make in makers.items():
            while mark in text:
                text = text.replace(mark, make(), 1)
        return text


def outcome(source: str) -> int | None:
    """Return the result of f() after running the source, or None if either fails."""
    namespace: dict[str, Any] = {}
    try:
        exec(compile(source, "<program>", "exec"), namespace)
        value = namespace["f"]()
    except (NameError, AttributeError, TypeError, RecursionError):
        return None
    return value if isinstance(value, int) else None


def compare(seed: int) -> bool:
    """Return whether the program could be compared. Fail if the answer differs."""
    cells = Writer(seed).program()
    expected = outcome("\n".join(cells))
    if expected is None:
        return False
    answer = build_answer(cells, "f")
    assert isinstance(answer, Answer), (seed, answer)
    assert outcome(answer.source) == expected, (seed, "\n# --\n".join(cells), answer.source)
    return True


@pytest.mark.extended
def test_random_programs_behave_as_in_kernel() -> None:
    compared = sum(compare(seed) for seed in range(400))
    assert compared > 200


@pytest.mark.soak
@pytest.mark.timeout(3600)
def test_soak_random_programs() -> None:
    compared = sum(compare(seed) for seed in range(1_000, 200_000))
    assert compared > 100_000
