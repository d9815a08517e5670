"""Fixtures for the tests on hosts."""

from __future__ import annotations

from collections.abc import Iterator
from multiprocessing import resource_tracker

import pytest

from helpers import hosts
from helpers.hosts.machines import Hosts
from helpers.ranks import launcher, magics
from tests import conftest


@pytest.fixture(autouse=True)
def no_leaks() -> Iterator[None]:
    """Fail a test that leaves a process or a file of ranks. Dask may open and close sockets freely."""
    resource_tracker.ensure_running()  # multiprocessing's, which lives as long as this process
    processes, folders = conftest._processes(), conftest._folders()
    yield
    magics.end_live_world("the test has ended")
    conftest._settle(lambda: conftest._processes() - processes, "processes")
    conftest._settle(lambda: conftest._folders() - folders, "folders")


@pytest.fixture(scope="module")
def machines() -> Iterator[Hosts]:
    """Two hosts that are processes of this machine. Closing them must leave nothing behind."""
    launcher.connect().wait_until_ready()
    resource_tracker.ensure_running()
    before = conftest._processes(), conftest._folders()
    two = hosts.local(2).open()
    with two:
        launcher.launch(lambda rank, world_size: rank, 2)  # now the rank servers are running
    yield two
    two.close()
    conftest._settle(lambda: conftest._processes() - before[0], "processes")
    conftest._settle(lambda: conftest._folders() - before[1], "folders")
