"""A polling thread hides no deadlock, unless it can communicate."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable

import pytest
import torch
import torch.distributed as dist

from helpers.ranks.failures import Deadlock, RankTimeout
from helpers.ranks.launcher import launch
from helpers.ranks.rank_context import launch_folder
from tests.ranks.polling_threads import HELPING, QUIET, Start

pytestmark = [
    pytest.mark.usefixtures("preloaded"),
    pytest.mark.skipif(sys.platform != "linux", reason="deadlocks are detected on Linux"),
]
HELP_S = 1.5


def peer_returns(rank: int, n: int, start: Start) -> None:
    start(0.0)
    if rank == 0:
        dist.all_reduce(torch.ones(1))


def ranks_wait_for_each_other(rank: int, n: int, start: Start) -> None:
    start(0.0)
    dist.recv(torch.ones(1), 1 - rank)


@pytest.mark.sample(3)
@pytest.mark.parametrize("program", [peer_returns, ranks_wait_for_each_other])
@pytest.mark.parametrize("start", QUIET.values(), ids=QUIET)
def test_reports_hang_despite_polling_thread(program: Callable[..., None], start: Start) -> None:
    failure = launch(program, 2, args=(start,), timeout=20, on_failure="return").failure
    assert isinstance(failure, Deadlock), failure
    assert failure.diagnosis.kind == ("rank_left" if program is peer_returns else "cycle"), failure


def is_helped(rank: int, n: int, start: Start) -> None:
    if rank == 1:
        start(HELP_S)
    dist.recv(torch.ones(1), 1 - rank) if rank == 0 else dist.barrier()
    if rank == 0:
        dist.barrier()


@pytest.mark.extended
@pytest.mark.parametrize("start", HELPING.values(), ids=HELPING)
def test_waits_for_communicating_thread(start: Start) -> None:
    run = launch(is_helped, 2, args=(start,), timeout=20, on_failure="return")
    assert run.failure is None, run.failure


def unknown_thread_after_return(rank: int, n: int) -> None:
    def beat() -> None:
        time.sleep(60)
        dist.barrier()

    if rank == 0:
        threading.Thread(target=beat, daemon=True).start()
        dist.all_reduce(torch.ones(1))


def polls_for_returned_rank(rank: int, n: int) -> None:
    if rank == 0:
        work = dist.all_reduce(torch.ones(1), async_op=True)
        while not work.is_completed():
            time.sleep(0.01)


def waits_for_database(rank: int, n: int) -> None:
    import sqlite3

    base = sqlite3.connect(launch_folder() / "rows.db", timeout=60, isolation_level=None)
    if rank == 0:
        base.execute("begin exclusive")
    dist.barrier()
    if rank == 1:
        base.execute("begin exclusive")
    dist.barrier()


def only_sleeps(rank: int, n: int) -> None:
    if rank == 0:
        time.sleep(60)


def all_sleep(rank: int, n: int) -> None:
    time.sleep(60)


def polls_store_for_returned_rank(rank: int, n: int) -> None:
    store = dist.distributed_c10d._get_default_store()
    while rank == 0 and not store.check(["never set"]):
        time.sleep(0.01)


MORE_TIME = {
    all_sleep: "If your program needs more time, pass timeout=SECONDS",
    only_sleeps: "Rank 1 has returned. If the remaining ranks don't wait for it and need more time, pass",
    polls_store_for_returned_rank: "If the remaining ranks don't wait for it and need more time, pass",
}


@pytest.mark.sample(2)
@pytest.mark.parametrize(
    ("program", "says"),
    [
        (unknown_thread_after_return, "Rank 1 has returned, but rank 0 still waits for it"),
        (polls_for_returned_rank, "Rank 1 has returned, but rank 0 still waits for it"),
        (waits_for_database, "Rank 1 waits"),
        *MORE_TIME.items(),
    ],
)
def test_timeout_reports_cause(program: Callable[..., None], says: str) -> None:
    failure = launch(program, 2, timeout=3, on_failure="return").failure
    assert isinstance(failure, RankTimeout), failure
    assert says in str(failure), failure
    assert ("more time" in str(failure)) is (program in MORE_TIME), failure
