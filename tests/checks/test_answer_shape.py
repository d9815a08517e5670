"""Read the facts on which advice relies from an answer's source."""

from __future__ import annotations

import pytest

from helpers.checks.answer_shape import shape_of

ENDS_WITHOUT = {
    "no return": "x = 1",
    "bare return": "if a:\n        return\n    return 1",
    "one branch": "if a:\n        return 1",
    "loop": "for x in b:\n        return x",
    "while": "while a:\n        return 1",
    "while with break": "while True:\n        break",
    "with": "with a:\n        b",
    "handler": "try:\n        return 1\n    except ValueError:\n        b",
    "inner function": "def g():\n        return 1",
    "match": "match a:\n        case 1:\n            return 1",
}
ALWAYS_RETURNS = {
    "value": "return 1",
    "none": "return None",
    "expression": "return a if b else None",
    "both branches": "if a:\n        return 1\n    else:\n        return 2",
    "raise": "raise ValueError",
    "endless": "while True:\n        if a:\n            return 1",
    "with": "with a:\n        return 1",
    "try": "try:\n        return 1\n    finally:\n        b",
    "inner function": "def g():\n        return\n    return g",
    "match": "match a:\n        case 1:\n            return 1\n        case _:\n            return 2",
}


def may_return_nothing(body: str) -> bool:
    return shape_of(f"def f(a, b):\n    {body}\n", "f").may_return_nothing


@pytest.mark.parametrize("name", ENDS_WITHOUT)
def test_detects_paths_without_return(name: str) -> None:
    assert may_return_nothing(ENDS_WITHOUT[name])


@pytest.mark.parametrize("name", ALWAYS_RETURNS)
def test_recognizes_always_returning_functions(name: str) -> None:
    assert not may_return_nothing(ALWAYS_RETURNS[name])


def test_reads_positional_parameters() -> None:
    assert shape_of("def f(a, b=1): return a", "f").parameters == ("a", "b")
    assert shape_of("def f(a, *b): return a", "f").parameters == ()


RETURNED_CALLS = {
    "dist.all_reduce": "x = dist.all_reduce(a)\n    return x",
    "dist.broadcast": "return dist.broadcast(a, 0)",
    "": "x = dist.all_reduce(a)\n    x = a\n    return x",
}


@pytest.mark.parametrize("call", RETURNED_CALLS)
def test_recognizes_returned_call(call: str) -> None:
    assert shape_of(f"def f(a):\n    {RETURNED_CALLS[call]}\n", "f").returned_call == call


@pytest.mark.parametrize("program", ["def f(:", "class f: pass", ""])
def test_unclear_program_yields_no_facts(program: str) -> None:
    assert shape_of(program, "f") == shape_of("", "f")
