"""Each program of this folder ends on forked ranks as in new processes, but for what must differ."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.conformance.cells import Cells
from tests.conformance.entry import ENGINE_WAYS, Entry, all_entries
from tests.conformance.run_entry import PlainCache, compare

ENTRIES = all_entries()
EACH_TIME = {
    "collectives/async_op",
    "language/metaclass_registry",
    "printing/no_newline",
    "settings/names_of_modules",
    "settings/seeds",
    "signals/exit_three",
    "stores/missing_key",
    "threads/error_in_thread",
    "wrong_calls/one_skips_reduce",
}
"""One of each kind of end. What imports the compiler in every way costs 15 s: `make soak` has all."""
SOME = [entry for entry in ENTRIES if entry.path in EACH_TIME]
REST = [entry for entry in ENTRIES if entry not in SOME]


@pytest.fixture(scope="module")
def kept_cells() -> Iterator[Cells]:
    cells = Cells()
    try:
        yield cells
    finally:
        cells.close()


@pytest.fixture
def cells(kept_cells: Cells) -> Iterator[Cells]:
    """The module's kernel, left without ranks."""
    yield kept_cells
    kept_cells.settle()


@pytest.mark.timeout(600)
@pytest.mark.parametrize("entry", SOME, ids=lambda entry: entry.path)
def test_ends_alike_in_all_ways(entry: Entry, cells: Cells) -> None:
    _check(entry, cells)


@pytest.mark.soak
@pytest.mark.timeout(600)
@pytest.mark.parametrize("entry", REST, ids=lambda entry: entry.path)
def test_the_others_end_alike_in_all_ways(entry: Entry, cells: Cells) -> None:
    _check(entry, cells)


def _check(entry: Entry, cells: Cells) -> None:
    compared = compare(entry, cells, PlainCache())
    told = [f"{way}: {text}" for way, text in compared.differences.items()]
    assert not told, "\n".join([entry.title, *told])


def test_there_are_many_programs_and_each_difference_says_why() -> None:
    assert len(ENTRIES) >= 220 and len({entry.path for entry in ENTRIES}) == len(ENTRIES)
    for entry in ENTRIES:
        assert set(entry.differs) <= set(ENGINE_WAYS)
        assert all(len(reason) > 20 for _, reason in entry.differs.values()), entry.path
