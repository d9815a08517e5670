"""Assert that each program's outcome on forked ranks is that of new processes, unless it must differ."""

from __future__ import annotations

from collections.abc import Iterator
from operator import attrgetter

import pytest

from tests.conformance.cells import Cells
from tests.conformance.entry import ENGINE_WAYS, Entry, all_entries
from tests.conformance.outcome import Outcome, fingerprint
from tests.conformance.run_entry import compare, read_fingerprints

ENTRIES = all_entries()
KEPT = read_fingerprints()
PATH = attrgetter("path")
PLAINLY = {"collectives/async_op", "signals/exit_three", "wrong_calls/one_skips_reduce"}
"""Programs that run in new interpreters and in all ways of the engine, one for each kind of outcome."""
SLOW = {"compiled"}
"""Topics whose ranks import the compiler."""


def is_often(number: int, entry: Entry) -> bool:
    """Return whether `make test` runs a program: a tenth of those without new interpreters or kernels."""
    costs = entry.sets or entry.topic in SLOW or entry.path not in KEPT
    turn = (
        number // len(ENGINE_WAYS) % 10
    )  # four consecutive programs of every forty, one for each way
    return entry.path in PLAINLY or not (costs or turn)


OFTEN = [entry for number, entry in enumerate(ENTRIES) if is_often(number, entry)]


@pytest.fixture(scope="module")
def kept_cells() -> Iterator[Cells]:
    cells = Cells()
    try:
        yield cells
    finally:
        cells.close()


@pytest.fixture
def cells(kept_cells: Cells) -> Iterator[Cells]:
    """Yield the module's kernel, and end its ranks after the test."""
    yield kept_cells
    kept_cells.settle()


def _check(entry: Entry, cells: Cells | None, known: str | None, *ways: str) -> Outcome | None:
    compared = compare(entry, cells, known, ways)
    assert not compared.differences, entry.title
    return compared.outcomes.get("plain")


@pytest.mark.extended
@pytest.mark.parametrize("entry", OFTEN, ids=PATH)
def test_program_matches_record_on_new_interpreters(entry: Entry, cells: Cells) -> None:
    """Run each program in one way of the engine, and the next program in the next way."""
    if entry.path in PLAINLY:
        _check(entry, cells, None, *ENGINE_WAYS)
    else:
        way = ENGINE_WAYS[ENTRIES.index(entry) % len(ENGINE_WAYS)]
        _check(entry, cells, KEPT[entry.path], way)


@pytest.mark.soak
@pytest.mark.timeout(600)
@pytest.mark.parametrize("entry", ENTRIES, ids=PATH)
def test_program_outcome_is_independent_of_launcher(entry: Entry, cells: Cells) -> None:
    plain = _check(entry, cells, None, *ENGINE_WAYS)
    assert plain is not None
    now = fingerprint(entry.source, plain)
    again = f"python -m tests.conformance --plain {entry.path}"
    assert not KEPT or KEPT.get(entry.path) == now, again


def test_each_conformance_difference_has_reason() -> None:
    assert len(ENTRIES) >= 220 and len({entry.path for entry in ENTRIES}) == len(ENTRIES)
    for entry in ENTRIES:
        assert set(entry.differs) <= set(ENGINE_WAYS)
        assert all(len(reason) > 20 for _, reason in entry.differs.values()), entry.path
