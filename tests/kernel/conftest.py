"""Kernels for the tests of this folder."""

from __future__ import annotations

import sys
from collections.abc import Iterator

import pytest
import zmq
from jupyter_core.utils import ensure_event_loop

from tests.kernel.session import Kernel, MakeKernel


@pytest.fixture(scope="session", autouse=True)
def client_loop() -> None:
    """Make, before any look for leaks, what Jupyter's client keeps as long as this process lives."""
    ensure_event_loop()
    zmq.Context.instance().socket(zmq.PAIR).close()


@pytest.fixture(scope="module")
def long_lived() -> Iterator[Kernel]:
    """A kernel with its rank server, for all tests of a module."""
    kernel = Kernel()
    try:
        kernel.value("from helpers import *\nimport torch, torch.distributed as dist, os, time")
        kernel.value("launch(lambda rank, n: rank, 2)")
        yield kernel
    finally:
        kernel.close()


@pytest.fixture
def kernel(long_lived: Kernel) -> Iterator[Kernel]:
    """The module's kernel, left without ranks."""
    yield long_lived
    long_lived.value("from helpers.ranks.magics import end_live_world; end_live_world('a test')")


@pytest.fixture
def new_kernel() -> Iterator[MakeKernel]:
    """Make kernels of a test's own; the end of each is looked at."""
    yield from _made(sys.executable)


@pytest.fixture
def forked_kernel(forking_python: str) -> Iterator[MakeKernel]:
    """Make kernels of a test's own that have imported torch: for what cells do, not for processes."""
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
