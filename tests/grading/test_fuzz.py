"""Arbitrary bytes from ranks lead to a value or an error, a trace, a verdict, and no points.

Every run tries a few examples, long runs three hundred times as many.
"""

from __future__ import annotations

import json
import math
import socket
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from helpers.answers.reader import UnreadableNotebook, read_answers
from helpers.checks.case import Case
from helpers.checks.draw import plan_draws
from helpers.checks.execution import Execution, JudgeFailed
from helpers.checks.exercise import Exercise
from helpers.checks.judge import judge
from helpers.checks.kinds import Kind
from helpers.checks.registry import exercises
from helpers.grading.sandbox.limits import Limits
from helpers.ranks import wire
from helpers.ranks.run import Run
from helpers.trace.collector import Collector
from helpers.trace.events import COLLECTIVES, Place, Trace

FEW, MANY = 10, 3_000

Test = Callable[..., None]


def often(*strategies: Any) -> Callable[[Test], tuple[Test, Test]]:
    """Return a test in two variants: with a few examples and, for long runs, with many."""
    checks = [HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much]

    def times(test: Test, count: int) -> Test:
        told = settings(max_examples=count, suppress_health_check=checks)
        return told(given(*strategies)(test))

    def twice(test: Test) -> tuple[Test, Test]:
        many = pytest.mark.soak(pytest.mark.timeout(1800)(times(test, MANY)))
        return times(test, FEW), many

    return twice


NUMBERS = st.integers(-3, 9) | st.sampled_from([2**31, 2**63, -(2**63), 10**30, True])
PLAIN = (
    st.none()
    | NUMBERS
    | st.floats()
    | st.text(max_size=4)
    | st.sampled_from(
        ["float32", "int64", "bool", "bfloat16", "complex64", "<f8", "O", "nan", "0x1"]
    )
)
KINDS = st.sampled_from(
    ["list", "tuple", "set", "frozenset", "dict", "named", "float", "int", "complex", "range"]
    + ["bytes", "size", "device", "dtype", "tensor", "ndarray", "scalar"]
)
SHAPES = st.lists(st.integers(-1, 5), max_size=4)


def nodes(inner: Any) -> Any:
    """Return nodes in the format of `wire.encode`, most of them with an error."""
    lists = st.lists(inner, max_size=4)
    pairs = st.lists(st.tuples(inner, inner).map(list), max_size=3)
    return (
        st.tuples(KINDS, lists).map(list)
        | st.tuples(st.just("dict"), pairs).map(list)
        | st.tuples(KINDS, inner, inner, inner).map(list)
        | st.tuples(
            st.just("named"), st.text("ab_", max_size=3), st.lists(st.text("abc")), lists
        ).map(list)
        | st.tuples(KINDS, PLAIN, SHAPES, NUMBERS, NUMBERS).map(list)
        | st.builds(
            _tensor, st.sampled_from(["float32", "int64", "bool", "uint8", "bfloat16"]), SHAPES
        )
    )


def _tensor(name: str, shape: list[int]) -> list[Any]:
    """Describe a tensor with consistent sizes, whose bytes may be present."""
    sizes = {"float32": 4, "int64": 8, "bool": 1, "uint8": 1, "bfloat16": 2}
    return ["tensor", name, shape, 0, abs(math.prod(shape)) * sizes[name]]


TREES = st.recursive(PLAIN, nodes, max_leaves=12)


def decoded(tree: Any, rest: bytes) -> Any:
    """Read a value like the launcher; None if it is invalid."""
    text = json.dumps(tree).encode()
    body = bytearray(wire.LENGTH.pack(len(text)) + text + rest)
    try:
        return wire.decode(body, Limits.result_parts)
    except wire.WireError:
        return None


@often(st.binary(max_size=400), st.integers(0, 20), st.integers(0, 300))
def frames(data: bytes, kind: int, length: int) -> None:
    mine, theirs = socket.socketpair()
    with mine, theirs:
        theirs.sendall(wire.HEADER.pack(kind, length) + data)
        theirs.shutdown(socket.SHUT_WR)
        mine.setblocking(False)
        reader, read = wire.FrameReader(), 0
        try:
            for got, body in reader.feed_from(mine):
                assert got in wire.MAX_BYTES and len(body) <= wire.MAX_BYTES[got]
                read += len(body)
        except (EOFError, wire.WireError):
            assert read <= len(data)


test_frames, test_many_frames = frames


@often(
    st.binary(max_size=60)
    | st.builds(lambda n, b: wire.LENGTH.pack(n) + b, st.integers(0, 99), st.binary())
)
def bodies(body: bytes) -> None:
    try:
        wire.decode(bytearray(body), Limits.result_parts)
    except wire.WireError:
        return


test_bodies, test_many_bodies = bodies

CASES: dict[str, Case] = {}
JUDGED = sorted(n for n, e in exercises().items() if e.kind not in {Kind.SCRIPT, Kind.MEASUREMENT})


def a_case(exercise: Exercise) -> Case:
    if exercise.name not in CASES:
        # If the right value is small, such as an empty tensor, a forged value may be right by chance.
        CASES[exercise.name] = max(
            map(exercise.case, plan_draws(exercise.sizes, 3, "fuzz")),
            key=lambda case: (case.world_size, len(repr(case.right))),
        )
    return CASES[exercise.name]


def run_of(values: list[Any], trace: Trace) -> Run:
    return Run(len(values), values, [""] * len(values), trace, None, "gloo", 0.0, (), None)


@often(
    st.sampled_from(JUDGED),
    st.lists(st.tuples(TREES, st.binary(max_size=64)), min_size=1, max_size=3),
)
def values_are_judged(name: str, sent: list[tuple[Any, bytes]]) -> None:
    exercise = exercises()[name]
    case = a_case(exercise)
    values = [decoded(*sent[rank % len(sent)]) for rank in range(case.world_size)]
    tried = Execution(case, run_of(values, Trace(case.world_size)))
    try:
        verdict = judge(exercise, tried, [tried])
    except (
        JudgeFailed
    ) as error:  # reported as an error about the value, after which the grader runs the reference
        assert error.is_odd, error
        return
    assert not verdict.passed
    assert len(verdict.advice) < 4_000 and all(len(row.got) < 400 for row in verdict.rows)


test_values_are_judged, test_many_values_are_judged = values_are_judged

OF_ODD_KINDS = (
    torch.tensor([1 + 2j]),
    torch.zeros(2, 0),
    np.array([1, 2]),
    range(10**9),
    [range(2**70)],
    10**400,
    "words",
    {"words": range(10**12)},
    {},
    (None, None),
)


@pytest.mark.sample(10)
@pytest.mark.parametrize("name", JUDGED)
def test_odd_values_cause_no_check_fault(name: str) -> None:
    exercise = exercises()[name]
    case = a_case(exercise)
    for value in OF_ODD_KINDS:
        tried = Execution(case, run_of([value] * case.world_size, Trace(case.world_size)))
        try:
            assert not judge(exercise, tried, [tried]).passed
        except JudgeFailed as error:
            assert error.is_odd, error


OF_RULES = (KeyError, TypeError, ValueError, IndexError, AttributeError, RuntimeError)
"""Errors that an exercise's rules may raise on a forged record, after which the grader runs the reference."""
OPS = st.sampled_from(sorted(COLLECTIVES) + ["send", "recv", "span", "fly"])
ODD = st.none() | NUMBERS | st.text(max_size=3) | st.lists(NUMBERS, max_size=3) | st.floats()
SMALL = st.integers(0, 4)
MORE = st.dictionaries(
    st.sampled_from(["peer", "root", "tag", "reduce_op", "asynchronous"]), SMALL | ODD, max_size=5
)
ABOUT = st.tuples(SMALL | ODD, st.just("float32") | ODD, st.just([[2]]) | ODD, MORE | ODD)
RECORDS = st.one_of(
    st.tuples(st.just("site"), SMALL, OPS, OPS, st.just(["<answer>", 1, "f"]) | ODD).map(list),
    st.tuples(st.just("group"), st.sampled_from(["0", "1"]) | ODD, st.just([0, 1]) | ODD).map(list),
    st.builds(
        lambda head, about: [*head, *about],
        st.tuples(
            st.just("call"),
            SMALL | ODD,
            SMALL | ODD,
            st.sampled_from(["0", "1"]) | ODD,
            SMALL | ODD,
        ),
        ABOUT,
    ),
    st.tuples(st.just("groups"), st.tuples(st.just("0"), st.just([0, 1]) | ODD) | ODD).map(list),
    st.tuples(st.just("wait"), SMALL | ODD, SMALL | ODD).map(list),
    st.tuples(st.just("end"), SMALL | ODD, SMALL | ODD, st.just("") | ODD, SMALL | ODD).map(list),
    st.lists(ODD, max_size=3),
)
LINES = st.lists(
    RECORDS.map(lambda record: json.dumps(record).encode()) | st.binary(max_size=20), max_size=25
)


@often(st.sampled_from(JUDGED), st.lists(LINES, min_size=1, max_size=3))
def records_are_judged(name: str, said: list[list[bytes]]) -> None:
    exercise = exercises()[name]
    case = a_case(exercise)
    ranks = case.world_size
    collector = Collector(ranks, lambda file, line, function: Place(file, line, function))
    for rank in range(ranks):
        collector.feed(rank, said[rank % len(said)])
        collector.blocking_call(rank), collector.unfinished_calls(rank)
    trace = collector.trace()
    assert sum(message.recv is not None for message in trace.messages()) <= len(trace)
    assert all(collective.calls for collective in trace.collectives())
    with suppress(*OF_RULES):
        judge(exercise, Execution(replace(case, right=None), run_of([None] * ranks, trace)))


test_records_are_judged, test_many_records_are_judged = records_are_judged

SOURCES = st.text(max_size=20) | st.sampled_from(
    [
        "import torch",
        "def ping_pong(rank): return 1",
        "class",
        "%%ranks 2\nx",
        "\0",
        "\ud800",
        "x = (" * 99,
    ]
)
CELLS = st.fixed_dictionaries(
    {},
    optional={
        "cell_type": st.sampled_from(["code", "markdown", "raw"]) | PLAIN,
        "source": SOURCES | st.lists(SOURCES | PLAIN, max_size=3) | PLAIN,
        "id": PLAIN,
        "metadata": st.just({}) | PLAIN,
        "outputs": st.just([]) | PLAIN,
        "execution_count": PLAIN,
    },
)
NOTEBOOKS = st.fixed_dictionaries(
    {"cells": st.lists(CELLS | PLAIN, max_size=5) | PLAIN},
    optional={
        "nbformat": st.just(4) | PLAIN,
        "nbformat_minor": st.just(5) | PLAIN,
        "metadata": st.just({}) | PLAIN,
    },
)


def a_notebook_is_read(path: Path, content: bytes) -> None:
    path.write_bytes(content)
    try:
        found = read_answers(path, ["ping_pong"])
    except UnreadableNotebook as error:
        assert "\n" not in str(error)
    else:
        assert set(found) == {"ping_pong"}


@pytest.mark.parametrize(
    "count", [5, pytest.param(500, marks=[pytest.mark.soak, pytest.mark.timeout(1800)])]
)
def test_reads_or_reports_any_notebook(count: int, tmp_path: Path) -> None:
    @settings(max_examples=count, suppress_health_check=list(HealthCheck))
    @given(NOTEBOOKS.map(lambda told: json.dumps(told).encode()) | st.binary(max_size=50))
    def read(content: bytes) -> None:
        a_notebook_is_read(tmp_path / "02_blocking_p2p.ipynb", content)

    read()
