"""A stuck world is diagnosed within moments, and a busy world is never called stuck."""

from __future__ import annotations

import os
import re
import signal
import socket
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext, suppress
from datetime import timedelta
from subprocess import PIPE, Popen
from typing import Any

import pytest
import torch
import torch.distributed as dist

from helpers.ranks.deadlock_watch import (
    _MAX_SKIPPED,
    DeadlockDetector,
    _has_changed,
    _ThreadActivity,
)
from helpers.ranks.failures import Deadlock, RankFailed, RankTimeout
from helpers.ranks.launcher import connect, launch
from helpers.ranks.processes import children_of
from helpers.ranks.rank_context import span
from helpers.trace.events import Diagnosis
from tests.ranks.slow_programs import SLOW, STOPPED
from tests.ranks.stuck_programs import STUCK


def stuck(fn: Callable[[int, int], object], world_size: int = 2) -> Diagnosis:
    run = launch(fn, world_size, on_failure="return", timeout=20)
    assert isinstance(run.failure, Deadlock), run.failure
    return run.failure.diagnosis


def one() -> torch.Tensor:
    return torch.ones(1)


def test_diagnoses_cycle_of_receives() -> None:
    found = stuck(lambda r, n: dist.recv(one(), (r + 1) % n), 3)
    assert found.kind == "cycle" and "receives" in found.summary
    assert [wait.waits_for for wait in found.waits] == [(1,), (2,), (0,)]
    where = found.waits[0].event and found.waits[0].event.where
    assert where is not None and where.cell == "test_watch.py"


@pytest.mark.extended
def test_diagnoses_cycle_of_sends() -> None:
    found = stuck(lambda r, n: dist.send(one(), (r + 1) % n), 3)
    assert found.kind == "cycle" and "sends" in found.summary


@pytest.mark.extended
def test_diagnoses_mismatched_tags() -> None:
    def talk(rank: int, n: int) -> None:
        if rank == 0:
            dist.send(one(), 1, tag=1)
        else:
            dist.recv(one(), 0, tag=2)

    found = stuck(talk)
    assert found.kind == "unmatched" and found.guilty == (0, 1)
    assert "rank 0 sends with tag 1" in found.summary and "receives with tag 2" in found.summary


def test_diagnoses_mismatched_collectives() -> None:
    def talk(rank: int, n: int) -> None:
        if rank == 0:
            dist.all_reduce(one())
        else:
            dist.broadcast(one(), 0)

    found = stuck(talk, 3)
    assert found.kind == "mismatched_collectives" and found.guilty == (0,)


def test_diagnoses_different_roots() -> None:
    def talk(rank: int, n: int) -> None:
        dist.broadcast(torch.ones(4), rank)
        dist.barrier()

    found = launch(talk, 3, on_failure="return", timeout=20).failure
    if isinstance(found, Deadlock):  # gloo may also let the first broadcasts pass
        assert found.diagnosis.kind == "mismatched_collectives", found


@pytest.mark.extended
def test_diagnoses_two_groups_in_different_orders() -> None:
    def talk(rank: int, n: int) -> None:
        groups = [dist.new_group([0, 1]), dist.new_group([0, 1])]
        for group in groups if rank == 0 else groups[::-1]:
            dist.all_reduce(one(), group=group)

    found = stuck(talk)
    assert found.kind == "mismatched_collectives" and "different orders" in found.summary


def test_reports_different_shapes() -> None:
    found = launch(
        lambda r, n: dist.all_reduce(torch.ones(3 + r)), 4, on_failure="return", timeout=20
    ).failure
    assert found is not None and "3 float32" in str(found) and "4 float32" in str(found)


def test_diagnoses_missing_group_creation() -> None:
    def talk(rank: int, n: int) -> None:
        if rank == 0:
            dist.new_group([0, 1])

    found = stuck(talk)
    assert found.kind == "rank_left" and found.guilty == (1,)
    assert "Rank 1 has returned, and rank 0 still waits in new_group for it" in found.summary


def test_diagnoses_different_group_creation_orders() -> None:
    def talk(rank: int, n: int) -> None:
        if rank == 1:
            dist.new_group([0])
        dist.new_group([0, 1])

    found = stuck(talk)
    assert found.kind == "stuck" and "Every rank waits in new_group for ranks" in found.summary


@pytest.mark.extended
def test_diagnoses_peer_skipping_backward() -> None:
    def train(rank: int, n: int) -> None:
        model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(4, 4))
        for step in range(2):
            loss = model(torch.ones(2, 4)).sum()
            if rank == 0 or step == 0:
                loss.backward()

    found = stuck(train)
    assert found.kind == "skipped_backward" and found.guilty == (1,)


def test_diagnoses_other_call_instead_of_backward() -> None:
    def train(rank: int, n: int) -> None:
        model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(40, 40))
        for step in range(2):
            loss = model(torch.ones(2, 40)).sum()
            if rank == 0 or step == 0:
                loss.backward()
        dist.barrier()

    assert stuck(train).kind in {"skipped_backward", "mismatched_collectives"}


@pytest.mark.extended
def test_diagnoses_waits_in_cpp() -> None:
    def talk(rank: int, n: int) -> None:
        import torch.distributed._functional_collectives as funcol

        if rank == 0:
            funcol.all_reduce(one(), "sum", dist.group.WORLD).wait()

    assert stuck(talk).kind == "rank_left"


@pytest.mark.sample(14)
@pytest.mark.parametrize("recorded", [True, False], ids=["recorded", "unrecorded"])
@pytest.mark.parametrize("name", STUCK)
def test_diagnoses_each_stuck_program(name: str, recorded: bool) -> None:
    program = STUCK[name]
    run = launch(
        program.work,
        program.world_size,
        on_failure="return",
        timeout=20,  # longer than a diagnosis takes
        init=program.init,
        trace=recorded,
    )
    assert isinstance(run.failure, Deadlock), run.failure
    kinds = program.kinds if recorded else program.unrecorded
    assert run.failure.diagnosis.kind in kinds, run.failure


@pytest.mark.sample(8)
@pytest.mark.parametrize("name", SLOW)
def test_slow_progress_raises_no_alarm(name: str) -> None:
    work, init = SLOW[name]
    with stopping_a_rank(1.0) if name in STOPPED else nullcontext():
        launch(work, 2, args=(1.1,), init=init, timeout=30)


@contextmanager
def stopping_a_rank(seconds: float, must: bool = True) -> Iterator[None]:
    """Stop one rank of the world started in this block, and continue it after some time.

    must: whether to fail if it was too late for stopping any rank.
    """
    server = connect()
    server.wait_until_ready()
    before = set(children_of(server.pid))
    stopped = threading.Event()

    def stop() -> None:
        deadline = time.monotonic() + 20
        while not (ranks := set(children_of(server.pid)) - before):
            if time.monotonic() > deadline:
                return
            time.sleep(0.01)
        time.sleep(0.3)
        with suppress(ProcessLookupError):
            os.kill(min(ranks), signal.SIGSTOP)
            stopped.set()
            time.sleep(seconds)
            os.kill(min(ranks), signal.SIGCONT)

    helper = threading.Thread(target=stop)
    helper.start()
    try:
        yield
    finally:
        helper.join(30)
    assert stopped.is_set() or not must, "no rank was stopped"


@pytest.mark.extended
def test_large_transfers_raise_no_alarm() -> None:
    def talk(rank: int, n: int) -> float:
        x = torch.ones(50_000_000)
        for _ in range(4):
            dist.all_reduce(x)
        return float(x[0])

    assert launch(talk, 2, timeout=60).values == [16.0, 16.0]


def test_monitored_barrier_reports_missing_ranks_first() -> None:
    def roll_call(rank: int, n: int) -> None:
        if rank not in {1, 3}:
            dist.monitored_barrier(timeout=timedelta(seconds=1), wait_all_ranks=True)

    failure = launch(roll_call, 5, on_failure="return", timeout=20).failure
    assert isinstance(failure, RankFailed)
    assert failure.rank == 0
    assert "Ranks 1, 3 failed to pass monitoredBarrier" in failure.error.message
    assert "(the same on" not in str(failure)


def test_diagnoses_monitored_barrier_with_long_timeout() -> None:
    def patient(rank: int, n: int) -> None:
        if rank:
            dist.monitored_barrier(timeout=timedelta(minutes=5))

    found = stuck(patient, 3)
    assert found.kind == "rank_left" and found.guilty == (0,)


@pytest.mark.extended
def test_diagnoses_deadlock_after_long_trace() -> None:
    def chatter(rank: int, n: int) -> None:
        for _ in range(51_000):
            with span("s"):
                pass
        dist.recv(one(), 1 - rank)

    assert stuck(chatter).kind in {"cycle", "stuck"}


def test_reports_missing_key() -> None:
    def waits(rank: int, n: int) -> None:
        store = dist.PrefixStore("mine", dist.distributed_c10d._get_default_store())
        if rank:
            store.wait(["color", "size"])

    found = stuck(waits)
    assert found.kind == "missing_key" and found.guilty == (1,)
    assert "store.wait" in found.summary and "the keys 'color', 'size'" in found.summary


_SETS_LATE = """
import sys, time
from torch.distributed import TCPStore
store = TCPStore("127.0.0.1", 0, is_master=True, wait_for_workers=False)
print(store.port, flush=True)
sys.stdin.readline()
time.sleep(1.5)
store.set("go", "now")
sys.stdin.readline()
"""


@pytest.mark.extended
def test_externally_served_key_raises_no_alarm() -> None:
    def waits(rank: int, n: int, port: int) -> bytes:
        return bytes(dist.TCPStore("127.0.0.1", port).get("go"))

    command = [sys.executable, "-c", _SETS_LATE]
    with Popen(command, stdin=PIPE, stdout=PIPE, text=True, bufsize=1) as other:
        assert other.stdin is not None and other.stdout is not None
        try:
            port = int(other.stdout.readline())
            other.stdin.write("\n")
            assert launch(waits, 2, args=(port,), init=False).values == [b"now"] * 2
        finally:
            other.kill()


def test_reports_peer_blocked_in_own_code() -> None:
    found = stuck(STUCK["queue_of_the_peer"].work)
    assert found.guilty == (0,)
    assert found.summary.startswith("Rank 0 is blocked in its own code at ")
    assert "peer, tag and group" not in found.advice


def test_distinguishes_wrong_ring_peers_from_cycle() -> None:
    found = stuck(STUCK["ring_that_receives_from_the_wrong_side"].work, 3)
    assert found.summary.startswith("The peers differ: rank 0 sends to rank 1 (")
    assert "but rank 1 receives from rank 2 (" in found.summary


def test_shows_lines_of_other_threads() -> None:
    found = stuck(STUCK["locks_taken_in_two_orders"].work)
    shown = found.waits[0].state
    assert shown.count("its thread 'Thread-") == 2 and shown.count("stuck_programs.py, line") == 3


# --- samples of a busy machine: (rank, thread) -> number of times it has given up the processor -----------


def test_recognizes_progress_of_connecting_rank() -> None:
    """Rank 1 found no server at the port and slept, then connected to rank 0, within the time of one look."""
    world: Any = None
    detector = DeadlockDetector(world, 60.0)
    first = _ThreadActivity(0.0, {}, {(0, 25): 36, (1, 26): 11}, change_count=0)
    later = _ThreadActivity(0.62, {(1, 26): 19}, {(0, 25): 219, (1, 96): 1}, change_count=0)
    detector._first_activity = first
    assert [detector._is_sending_request(later) for _ in range(_MAX_SKIPPED + 1)] == [
        True
    ] * _MAX_SKIPPED + [False]
    assert _has_changed(first, later)


def test_recognizes_polling_rank_during_request() -> None:
    world: Any = None
    detector = DeadlockDetector(world, 60.0)
    detector._first_activity = _ThreadActivity(0.0, {(1, 26): 19}, {(0, 25): 36}, change_count=0)
    at_its_question = _ThreadActivity(0.3, {(0, 25): 90, (1, 26): 19}, {}, change_count=0)
    back = _ThreadActivity(0.32, {(1, 26): 19}, {(0, 25): 91}, change_count=0)
    assert detector._is_sending_request(at_its_question) and not detector._is_sending_request(back)
    assert not _has_changed(detector._first_activity, back)


def _polls_a_work(rank: int, n: int) -> None:
    work = dist.irecv(torch.zeros(1), src=1 - rank)
    while not work.is_completed():
        time.sleep(0.01)


def _polls_a_flag(rank: int, n: int) -> None:
    done: list[int] = []
    while not done:
        time.sleep(0.01)


def _accepts(rank: int, n: int) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.accept()


@pytest.mark.sample(2)
@pytest.mark.parametrize("polls", [_polls_a_work, _polls_a_flag, _accepts])
def test_continuable_world_times_out_without_diagnosis(
    polls: Callable[[int, int], None],
) -> None:
    """A sleeping loop may end by the clock, and any process may connect, so only the line is named."""
    failure = launch(polls, 2, timeout=2.0, on_failure="return").failure
    assert isinstance(failure, RankTimeout)
    line = polls.__code__.co_firstlineno
    assert [wait.event for wait in failure.waits] == [None, None]
    named = [int(number) for number in re.findall(r"test_watch\.py, line (\d+)", str(failure))]
    assert len(named) == 2 and all(line < number <= line + 3 for number in named), failure


class _Reduced(torch.utils.data.Dataset[torch.Tensor]):
    """Calls a collective for each item: in a worker, on the group of its parent rank."""

    def __len__(self) -> int:
        return 2

    def __getitem__(self, index: int) -> torch.Tensor:
        dist.all_reduce(item := one())
        return item


@pytest.mark.extended
def test_reports_collective_call_in_dataloader_worker() -> None:
    def load(rank: int, n: int) -> None:
        list(torch.utils.data.DataLoader(_Reduced(), num_workers=1, multiprocessing_context="fork"))

    failure = launch(load, 2, timeout=5.0, on_failure="return").failure
    assert isinstance(failure, RankTimeout)
    line = _Reduced.__getitem__.__code__.co_firstlineno + 1
    said = f"its DataLoader worker calls all_reduce (test_watch.py, line {line})"
    assert [said in wait.state for wait in failure.waits] == [True, True], failure
