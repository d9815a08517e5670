"""torch's multi-process tests end on the engine's ranks as in plain processes.

`make soak TEST_ARGS="tests/torch_suite"` tries a torch: all tests of process groups, and a sample of those of
RPC, by `launch`, and a sample of the former in `%%ranks` cells.
"""

from __future__ import annotations

import functools
import json
import os
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from helpers.ranks import launcher
from helpers.ranks.budget import MAX_BUDGET_FACTOR
from helpers.ranks.failures import RankFailed
from helpers.ranks.launcher import launch
from tests.kernel.session import Kernel
from tests.torch_suite.run_folder import DEADLINE_S, folder_of_a_run

ROOT = Path(__file__).parents[2]
WORLD_SIZE = 3
C10D_PARTS, RPC_PARTS = 8, 4
# Sampling intervals: for tests of RPC, and for tests of process groups in cells.
RPC_STEP, CELLS_STEP = 8, 10
START_S, SLACK_S = 180.0, 60.0
# torch's modules read these variables when they are imported, also in the rank server.
READ_AT_IMPORT = {"BACKEND": "gloo", "WORLD_SIZE": str(WORLD_SIZE)}
# The engine's names for the endings of a rank that sends no message.
SILENT = {"Deadlock", "RankTimeout", "RankDied"}
TRIES = 3
"""On a busy machine, torch's tests may also fail plainly, so after a difference both ways are tried again."""
DIFFERS = {
    "test_dynamic_rpc_init_rpc_without_rank": "it wants no RANK, which ranks have, as under torchrun",
    "test_clean_context_during_backward": "it calls sys.exit(0), which counts as returning",
}

# Each rank's ending, or the kind of error raised by a launch.
End = list[str] | str

pytestmark = [pytest.mark.soak, pytest.mark.timeout(3600)]


@pytest.fixture(scope="module", autouse=True)
def environment() -> Iterator[None]:
    """Start a separate rank server for this module, with the variables that torch's modules read."""
    with pytest.MonkeyPatch.context() as patch:
        for name, value in READ_AT_IMPORT.items():
            patch.setenv(name, value)
        launcher.disconnect()
        yield
        launcher.disconnect()


def plainly(suite: str, *words: str) -> list[Any]:
    """Run `tests.torch_suite.plain`, and return its output."""
    done = subprocess.run(
        [sys.executable, "-m", "tests.torch_suite.plain", suite, *words],
        env={**os.environ, **READ_AT_IMPORT, "OMP_NUM_THREADS": "1"},
        cwd=ROOT,
        stdout=subprocess.PIPE,
        timeout=START_S + (DEADLINE_S + SLACK_S) * len(words),
        check=True,
    )
    return [json.loads(line) for line in done.stdout.splitlines()]


@functools.cache
def world_sizes(suite: str) -> dict[str, int]:
    """Return the names of a suite's tests, with the number of ranks that each needs."""
    (found,) = plainly(suite, "list")
    return {name: size for name, size in found.items() if name.partition(".")[2] not in DIFFERS}


def one_rank(rank: int, world_size: int, suite: str, name: str, folder: str) -> str:
    from tests.torch_suite import cases

    return cases.run(rank, world_size, suite, name, folder, joins=False)


def by_launch(suite: str, name: str) -> End:
    """Run a test by `launch`, recorded. RPC's tests find no process group, as in a script."""
    with folder_of_a_run() as folder:
        run = launch(
            one_rank,
            world_sizes(suite)[name],
            args=(suite, name, folder),
            timeout=DEADLINE_S,
            init=suite == "c10d",
            env={"BACKEND": "gloo"},
            on_failure="return",
        )
    if run.failure is None:
        return [str(value) for value in run.values]
    return (
        run.failure.error.kind
        if isinstance(run.failure, RankFailed)
        else type(run.failure).__name__
    )


_HOW = """
import sys
error = sys.last_value
print(error.error.kind if hasattr(error, "error") else type(error).__name__)
"""


def in_a_cell(kernel: Kernel, suite: str, name: str) -> End:
    """Run a test in a `%%ranks` cell of a real kernel, on new ranks."""
    with folder_of_a_run() as folder:
        cell = kernel.run(
            f"%%ranks {world_sizes(suite)[name]} --fresh --timeout {DEADLINE_S:g}\n"
            "from tests.torch_suite import cases\n"
            f"cases.run(rank, world_size, {suite!r}, {name!r}, {folder!r}, False)",
            DEADLINE_S * MAX_BUDGET_FACTOR + SLACK_S,
        )
        if cell.status == "ok":
            found = kernel.value("import json; print(json.dumps(_.values))")
            return [str(value) for value in json.loads(found)]
        return kernel.value(_HOW).strip()


def is_alike(plain: Sequence[str], engine: End) -> bool:
    """Return whether both ended well in the same way, or both by the same kind of error."""
    if isinstance(engine, list):
        return list(plain) == engine
    return engine in plain or ("nothing" in plain and engine in SILENT)


def compare(suite: str, names: Sequence[str], run: Callable[[str, str], End]) -> None:
    """Run tests plainly and by the engine; fail if some end differently each time."""
    counts: Counter[str] = Counter()
    differ: dict[str, tuple[list[str], End]] = {}
    todo = list(names)
    for _ in range(TRIES):
        differ = {}
        for name, plain in plainly(suite, *todo) if todo else []:
            # Tests that need a GPU skip themselves at once, so they say nothing about the engine.
            skipped = set(plain) == {"skipped"}
            engine = plain if skipped else run(suite, name)
            if is_alike(plain, engine):
                counts[
                    "skipped" if skipped else "passed" if set(plain) == {"passed"} else "failed"
                ] += 1
            else:
                differ[name] = plain, engine
        todo = list(differ)
    print(f"\ntorch's {suite}: {len(names)} tests, alike: {dict(counts)}, different: {differ}")
    assert not differ


@pytest.mark.parametrize("part", range(C10D_PARTS))
def test_process_groups_match_plain_processes(part: int) -> None:
    compare("c10d", list(world_sizes("c10d"))[part::C10D_PARTS], by_launch)


@pytest.mark.parametrize("part", range(RPC_PARTS))
def test_rpc_behaves_as_in_plain_processes(part: int) -> None:
    compare("rpc", list(world_sizes("rpc"))[::RPC_STEP][part::RPC_PARTS], by_launch)


def test_cells_behave_as_plain_processes() -> None:
    kernel = Kernel(**READ_AT_IMPORT)
    try:
        kernel.value("import helpers")
        names = list(world_sizes("c10d"))[::CELLS_STEP]
        compare("c10d", names, functools.partial(in_a_cell, kernel))
    finally:
        kernel.close()
