"""Fixtures for every test: its own progress file, no live views, and a search for leaks at its end."""

from __future__ import annotations

import gc
import itertools
import os
import shutil
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

# Set this before torch is loaded, here and in all processes that tests start. Otherwise OpenMP's threads
# wait for work in a busy loop, which takes the cores from other tests (drawing all cases in four
# processes at a time took 18 s, and 3.7 s with this). (In small letters: libgomp refuses "PASSIVE" in a
# Turkish locale, whose small letter of "I" is not "i".)
os.environ.setdefault("OMP_WAIT_POLICY", "passive")
# The same holds for threads that numpy starts when it is imported, in some hundred processes that import
# torch.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import pytest
from hypothesis import HealthCheck, settings

from helpers.ranks import launcher, magics
from helpers.ranks.processes import living_children
from tests.template import template, wait_for_template

# On a busy machine, drawing an example may take long.
settings.register_profile("busy", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("busy")

LEAK_S = 5.0
ORDINARY_S = 250
_numbers = itertools.count()

# Processes that tests start use this folder; its `sitecustomize` explains why.
QUICK = str(Path(__file__).with_name("quick"))
if QUICK not in os.environ.get("PYTHONPATH", "").split(os.pathsep):
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, [QUICK, os.environ.get("PYTHONPATH")]))


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> Iterator[None]:
    """Mark tests before some are deselected, and sort the remaining ones."""
    _mark_cases_outside_samples(items)
    yield
    items[:] = _longest_first(items)


def _mark_cases_outside_samples(items: list[pytest.Item]) -> None:
    """Mark as extended all cases of tests marked `sample(n)`, except n evenly spaced ones."""
    cases: dict[str, list[pytest.Item]] = {}
    for item in items:
        if item.get_closest_marker("sample") and not item.get_closest_marker("extended"):
            cases.setdefault(item.nodeid.partition("[")[0], []).append(item)
    for group in cases.values():
        marker = group[0].get_closest_marker("sample")
        assert marker is not None
        count = len(group)
        kept = {i * count // marker.args[0] for i in range(marker.args[0])}
        for i, item in enumerate(group):
            if i not in kept:
                item.add_marker("extended")


def _longest_first(items: list[pytest.Item]) -> list[pytest.Item]:
    """Begin with the longest tests, so that no worker waits for one test at the end.

    Long tests are recognized by their deadlines. They need the cores, so half of the workers run them while
    the others run short tests, many of which only wait. Each worker first runs one stretch of the list, and
    then takes tests from the others.
    """
    workers = int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", "1"))
    busy = -(-workers // 2)
    long = [item for item in items if _deadline(item) > ORDINARY_S]
    short = [item for item in items if _deadline(item) <= ORDINARY_S]
    stretch = -(-len(items) // workers)
    ordered: list[pytest.Item] = []
    for worker in range(workers):
        first = long[worker::busy] if worker < busy else []
        rest = stretch - len(first)
        ordered += first + short[:rest]
        short = short[rest:]
    return ordered + short


def pytest_collection_finish() -> None:
    """Exclude the collected tests from garbage collection, because they stay until the end."""
    gc.collect()
    gc.freeze()


def _deadline(item: pytest.Item) -> float:
    marker = item.get_closest_marker("timeout")
    return float(marker.args[0]) if marker is not None and marker.args else 0.0


@pytest.fixture(scope="session")
def progress_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("progress")


@pytest.fixture(autouse=True)
def own_progress(progress_folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Keep tests from changing the learner's progress, and live views from changing compared outputs."""
    monkeypatch.setenv("REAL_RANKS_PROGRESS", str(progress_folder / f"{next(_numbers)}.json"))
    monkeypatch.delenv("REAL_RANKS_WORK", raising=False)
    monkeypatch.setenv("REAL_RANKS_LIVE", "0")


@pytest.fixture(autouse=True)
def no_leaks() -> Iterator[None]:
    """Fail the test that leaves a process, a descriptor or a file of ranks behind."""
    processes, descriptors, folders = _processes(), _descriptors(), _folders()
    yield
    magics.end_live_world("the test has ended")
    _settle(lambda: _processes() - processes, "processes")
    _settle(lambda: _descriptors() - descriptors, "descriptors")
    _settle(lambda: _folders() - folders, "folders")


@pytest.fixture(scope="session", autouse=True)
def jupyter_event_loop() -> None:
    """Make Jupyter's client create its permanent event loop before any test counts descriptors."""
    from jupyter_core.utils import ensure_event_loop

    ensure_event_loop()


@pytest.fixture(scope="session", autouse=True)
def cuda_files() -> None:
    """Open the files that CUDA opens at the first query, before any test counts descriptors."""
    import torch

    torch.cuda.is_available()


@pytest.fixture(scope="session", autouse=True)
def end_server() -> Iterator[None]:
    yield
    launcher.disconnect()
    assert not _folders(), "the rank server's folder is still there"


def _settle(left: Callable[[], set[object]], what: str) -> None:
    """Wait until nothing is left, because a process that was killed takes a moment to disappear."""
    deadline = time.monotonic() + LEAK_S
    while left():
        assert time.monotonic() < deadline, f"{what} left behind: {sorted(map(str, left()))}"
        time.sleep(0.02)


def _processes() -> set[object]:
    """Return the ids of this process's running descendants, except the rank server; none without /proc."""
    held = launcher.current_connection()
    found: set[object] = set()
    parents = [os.getpid()]
    while parents:
        children = living_children(parents.pop())
        parents += children
        found.update(children)
    return found - {held.pid if held else 0}


def _descriptors() -> set[object]:
    """Return the open descriptors of this process, except the connection to the rank server."""
    held = launcher.current_connection()
    own = (
        {held.control.fileno(), held._log.fileno()}
        if held is not None and not held.closed
        else set()
    )
    found = set()
    for name in os.listdir("/proc/self/fd") if os.path.isdir("/proc/self/fd") else []:
        try:
            if int(name) not in own:
                found.add((name, os.readlink(f"/proc/self/fd/{name}")))
        except OSError:
            continue
    # matplotlib keeps the files of its fonts open
    return {item for item in found if "/proc/" not in item[1] and not item[1].endswith(".ttf")}


def _folders() -> set[object]:
    """Return the folders of ranks in the temp directory, and those of worlds that have not ended."""
    held = launcher.current_connection()
    mine = Path(held.site.scratch) if held is not None and not held.closed else None
    temp = Path(tempfile.gettempdir())
    names = [name for name in os.listdir(temp) if name.startswith(f"real-ranks-{os.getpid()}-")]
    found: set[object] = {temp / name for name in names} - {mine}
    return found | (set(mine.glob("world-*")) if mine is not None else set())


TEMPLATE = "RR_TEST_TEMPLATE"
"""The variable with the folder of the template shared by all workers."""
stop_template = pytest.StashKey[Callable[[], None]]()


def pytest_configure(config: pytest.Config) -> None:
    """If several workers run the tests, start one template for all of them, while they collect tests."""
    is_worker = hasattr(config, "workerinput")
    if is_worker or sys.platform != "linux" or config.getoption("dist", "no") == "no":
        return
    folder = tempfile.mkdtemp(prefix="rr-", dir="/tmp")
    stack = ExitStack()
    stack.callback(shutil.rmtree, folder, ignore_errors=True)
    start = threading.Thread(target=stack.enter_context, args=[template(Path(folder))])
    start.start()
    os.environ[TEMPLATE] = folder

    def stop() -> None:
        start.join()
        stack.close()

    config.stash[stop_template] = stop


def pytest_unconfigure(config: pytest.Config) -> None:
    config.stash.get(stop_template, lambda: None)()


@pytest.fixture(scope="session")
def forking_python() -> Iterator[str]:
    """The path of a Python whose programs are forked from a process with torch imported."""
    if sys.platform != "linux":
        yield sys.executable  # a fork of such a process works only on Linux
        return
    if shared := os.environ.get(TEMPLATE):
        yield wait_for_template(Path(shared))
        return
    # short: a socket's path may have 107 characters
    folder = tempfile.TemporaryDirectory(prefix="rr-", dir="/tmp")
    with folder, template(Path(folder.name)) as python:
        yield python


@pytest.fixture
def preloaded() -> None:
    """Make the rank server import DDP, FSDP, DTensor and similar modules, as an idle one does."""
    launcher.connect().preload()


@pytest.fixture
def shots() -> Path | None:
    """Return the folder for pictures, or None. Taking pictures costs as much time as the rest of a test."""
    name = os.environ.get("RR_SHOTS")
    if not name:
        return None
    folder = Path(name)
    folder.mkdir(parents=True, exist_ok=True)
    return folder
