"""The true values are nowhere in a measuring process, and the number of requests is limited."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from types import FunctionType
from typing import Any

import pytest

from helpers.answers.data import Answer
from helpers.checks.check_answer import grade
from helpers.checks.kinds import Kind
from helpers.checks.registry import exercises, get
from helpers.checks.stopwatch import MAX_ARGUMENT_TUPLES, MAX_TIMINGS, TimingReplies
from helpers.grading.grader import Grader
from tests.grading.hostile.attack import graded, text_of

MEASURED = [e.name for e in exercises().values() if e.kind is Kind.MEASUREMENT]
PLANTED = 0.12345678901234567

SEARCH = """
import gc, hashlib, sys
WANTED = {wanted!r}
def {name}(measure, *given, planted={planted}):
    def hashed(value):
        return hashlib.sha256(repr(value).encode()).hexdigest()[:16]
    todo, seen, numbers = [measure, sys.modules, *sys._current_frames().values()], set(), set()
    todo += gc.get_objects()
    frame = sys._getframe()
    while frame is not None:
        todo += [*frame.f_locals.values(), frame.f_globals]
        frame = frame.f_back
    while todo:
        value = todo.pop()
        if type(value) is float:
            numbers.add(value)
        elif id(value) not in seen:
            seen.add(id(value))
            try:
                todo += [each for each in gc.get_referents(value) if id(each) not in seen]
                todo += [cell.cell_contents for cell in getattr(value, "__closure__", None) or ()]
            except Exception:
                pass
    found = sorted(WANTED[hashed(n)] for n in numbers if hashed(n) in WANTED)
    raise RuntimeError(f"among {{len(numbers) // 100}}00 numbers: {{found}}")
"""
"""An answer that searches all reachable objects for numbers of which it knows only the hashes."""


def numbers_of(value: Any) -> Iterator[float]:
    """Return the numbers referenced by a case's functions."""
    if type(value) is float:
        yield value
    elif isinstance(value, FunctionType):
        for cell in value.__closure__ or ():
            yield from numbers_of(cell.cell_contents)
    elif isinstance(value, dict):
        for each in value.values():
            yield from numbers_of(each)


def searching(name: str, secret: str) -> str:
    cases = get(name).draw(secret)
    parts = [part for case in cases for part in (case.timings, case.right)]
    truths = {
        n for part in parts for n in numbers_of(part) if len(repr(n)) > 10
    }  # without numbers such as 0.1 that occur by chance
    assert len(truths) >= len(cases)
    wanted = {hashlib.sha256(repr(n).encode()).hexdigest()[:16]: f"truth {n!r}" for n in truths}
    wanted[hashlib.sha256(repr(PLANTED).encode()).hexdigest()[:16]] = "planted"
    return SEARCH.format(wanted=wanted, name=name, planted=PLANTED)


@pytest.mark.extended
@pytest.mark.parametrize("name", MEASURED)
def test_measuring_process_contains_no_right_values(name: str) -> None:
    source = searching(name, "visible")
    result = grade(get(name), Answer(name, source, (), ()), str, every_case=False)
    assert ": ['planted']" in result.cases[0].message, result.cases[0].message


@pytest.mark.extended
def test_memory_search_finds_only_planted_number(grader: Grader, tmp_path: Any) -> None:
    record = graded(
        grader, tmp_path, searching("crossover", "visible"), notebook="05_collective_algorithms"
    )
    text = next(text_of(each) for each in record.exercises if each.name == "crossover")
    assert ": ['planted']" in text


ASKS = """
import os, socket, struct
def crossover(measure, ranks):
    channel = socket.socket(fileno=os.dup(3))
    for body in {bodies}:
        channel.sendall(struct.pack("!BQ", 14, len(body)) + body)
    return 1.0, 1.0, 1.0
"""


@pytest.mark.extended
@pytest.mark.parametrize(
    ("bodies", "says"),
    [
        ("[b'[0, 1]'] * 30_000", ""),
        ("[b''] * 30_000", "WireError"),
        ("[b'[99, 1]']", "WireError"),
        ("[b'[0]', b'[]']", "WireError"),
        ("[b'[0, -1]']", "WireError"),
        ("[b'{}']", "WireError"),
        ("[b'[' * 150]", "WireError"),
        ("[b'1' * 201]", "WireError"),
        ("[b'[0, ' + b'9' * 190 + b']'] * 3", ""),
    ],
)
def test_forged_timing_request_earns_no_points(bodies: str, says: str) -> None:
    source = ASKS.format(bodies=bodies)
    result = grade(get("crossover"), Answer("crossover", source, (), ()), str, every_case=False)
    assert not result.points and says in f"{result.cases[0].message}", result.cases[0]


def test_limits_number_of_timings() -> None:
    replies = TimingReplies([lambda *of: 1.0, None])
    assert all(replies([0, 7]) == 1.0 for _ in range(MAX_TIMINGS))
    assert replies([0, 7]) is None and len(replies.timings[0][7,]) == MAX_TIMINGS
    replies = TimingReplies([lambda *of: 1.0])
    assert all(replies([0, n]) == 1.0 for n in range(MAX_ARGUMENT_TUPLES))
    assert replies([0, MAX_ARGUMENT_TUPLES]) is None and replies([0, 1]) == 1.0


def test_reports_endless_measuring() -> None:
    source = "def crossover(measure, ranks):\n    while True:\n        measure(8)\n"
    result = grade(get("crossover"), Answer("crossover", source, (), ()), str, every_case=False)
    assert "too many measurements" in result.cases[0].message or "timed out" in result.outcome.value
