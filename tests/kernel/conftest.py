"""Kernels for the tests in this folder."""

from __future__ import annotations

import sys
from collections.abc import Iterator

import pytest
import zmq
from jupyter_core.utils import ensure_event_loop

from tests.kernel.session import Kernel, MakeKernel


@pytest.fixture(scope="session", autouse=True)
def client_loop() -> None:
    """Create the permanent objects of Jupyter's client before any check for leaks."""
    ensure_event_loop()
    zmq.Context.instance().socket(zmq.PAIR).close()


@pytest.fixture(scope="module")
def long_lived() -> Iterator[Kernel]:
    """Yield a kernel with its rank server, for all tests of a module."""
    kernel = Kernel()
    try:
        kernel.value("from helpers import *\nimport torch, torch.distributed as dist, os, time")
        kernel.value("launch(lambda rank, n: rank, 2)")
        yield kernel
    finally:
        kernel.close()


@pytest.fixture
def kernel(long_lived: Kernel) -> Iterator[Kernel]:
    """Yield the module's kernel, and end its ranks after the test."""
    yield long_lived
    long_lived.value("from helpers.ranks.magics import end_live_world; end_live_world('a test')")


@pytest.fixture
def new_kernel() -> Iterator[MakeKernel]:
    """Yield a function that starts separate kernels for a test, and check the end of each."""
    yield from _made(sys.executable)


@pytest.fixture
def forked_kernel(forking_python: str) -> Iterator[MakeKernel]:
    """Yield a function that forks kernels with torch imported, for tests of cells, not of processes."""
    yield from _made(forking_python)


def _made(python: str) -> Iterator[MakeKernel]:
    made: list[Kernel] = []

    def make(**env: str) -> Kernel:
        made.append(Kernel(python, **env))
        made[-1].value("from helpers import *\nimport torch, torch.distributed as dist, os, time")
        return made[-1]

    yield make
    for kernel in made:
        kernel.close()
