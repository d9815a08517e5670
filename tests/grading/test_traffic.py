"""Bytes counted from outside: the calls that ranks really made explain them, and no others do."""

from __future__ import annotations

import importlib
import json
import socket
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace

import cloudpickle
import pytest
import torch
import torch.distributed as dist

from helpers.answers.build import Answer, build_answer
from helpers.checks.grade import grade
from helpers.checks.kinds import Kind
from helpers.checks.registry import get
from helpers.grading.explained import LOOK, mismatch
from helpers.grading.sandbox.levels import Plan, Sandbox
from helpers.ranks.launcher import run_on_ranks
from helpers.ranks.options import Options
from helpers.ranks.run import Run
from tests.submission_files import PRELUDE, all_samples


@pytest.fixture(scope="module")
def sandbox(plan: Plan) -> Iterator[Sandbox]:
    if plan.level != "bubblewrap":
        pytest.skip("only bubblewrap's network can be counted from outside")
    module = sys.modules[__name__]
    cloudpickle.register_pickle_by_value(module)  # in a sandbox there are no tests to import
    try:
        with Sandbox(plan) as sandbox:
            yield sandbox
    finally:
        cloudpickle.unregister_pickle_by_value(module)


def ones(count: int, times: int) -> list[torch.Tensor]:
    return [torch.ones(count) for _ in range(times)]


def ring(rank: int, n: int, count: int) -> None:
    work = dist.isend(torch.ones(count), (rank + 1) % n)
    dist.recv(torch.ones(count))  # of any source
    work.wait()


def gather(rank: int, n: int, count: int) -> None:
    dist.gather(torch.ones(count), ones(count, n) if rank == n - 1 else None, dst=n - 1)


def scatter(rank: int, n: int, count: int) -> None:
    dist.scatter(torch.ones(count), ones(count, n) if rank == 0 else None)


def of_a_new_group(rank: int, n: int, count: int) -> None:
    group = dist.new_group([0, 1])
    if rank < 2:
        dist.all_reduce(torch.ones(count), group=group)
    dist.barrier()


CALLS: dict[str, Callable[[int, int, int], object]] = {
    "nothing": lambda rank, n, count: None,
    "ring": ring,
    "gather": gather,
    "scatter": scatter,
    "a new group": of_a_new_group,
    "broadcast": lambda rank, n, count: dist.broadcast(torch.ones(count), n - 1),
    "all_reduce": lambda rank, n, count: dist.all_reduce(torch.ones(count)),
    "reduce": lambda rank, n, count: dist.reduce(torch.ones(count), 0),
    "all_gather": lambda rank, n, count: dist.all_gather(ones(count, n), torch.ones(count)),
    "all_to_all": lambda rank, n, count: dist.all_to_all(ones(count, n), ones(count, n)),
    "reduce_scatter": lambda rank, n, count: dist.reduce_scatter(torch.ones(count), ones(count, n)),
    "barrier": lambda rank, n, count: dist.barrier(),
}


def run(sandbox: Sandbox, name: str, n: int, count: int) -> Run:
    run = run_on_ranks(CALLS[name], Options(n), args=(count,), connection=sandbox.connection)
    assert run.failure is None and run.traffic is not None
    return run


@pytest.mark.parametrize("n", [2, 3, 5])
def test_recorded_calls_explain_what_was_counted(sandbox: Sandbox, n: int) -> None:
    for name in CALLS:
        for count in (1, 1_000, 600_001):
            said = mismatch(run(sandbox, name, n, count))
            assert said == "", f"{name}, {n} ranks, {count} elements: {said}"


@pytest.mark.parametrize("name", [name for name in CALLS if name != "nothing"])
def test_a_call_that_is_not_recorded_is_noticed(sandbox: Sandbox, name: str) -> None:
    for n, count in ((2, 1), (4, 1_000)):
        found = run(sandbox, name, n, count)
        silent = replace(found, trace=found.trace.select(lambda event: False))
        assert mismatch(silent).startswith(LOOK), f"{n} ranks, {count} elements"


@pytest.mark.parametrize("name", ["ring", "gather", "broadcast", "all_reduce", "all_gather"])
def test_a_call_that_was_not_made_is_noticed(sandbox: Sandbox, name: str) -> None:
    claimed = run(sandbox, name, 3, 50).trace
    assert mismatch(replace(run(sandbox, "nothing", 3, 50), trace=claimed)).startswith(LOOK)


def test_who_closes_its_sockets_is_noticed(sandbox: Sandbox) -> None:
    run = run_on_ranks(
        lambda rank, n: (dist.barrier(), dist.destroy_process_group()),
        Options(3),
        connection=sandbox.connection,
    )
    assert "were closed before" in mismatch(run)


def own_links(rank: int, n: int, forged: bool) -> list[int]:
    """Say one byte to everybody over connections that stay open, beside a show."""
    with socket.create_server(("127.0.0.1", 0)) as door:
        ports = [torch.zeros(1, dtype=torch.int64) for _ in range(n)]
        dist.all_gather(ports, torch.tensor([door.getsockname()[1]]))
        calls = [socket.create_connection(("127.0.0.1", int(ports[r]))) for r in range(rank)]
        answered = [door.accept()[0] for _ in range(n - rank - 1)]
    for link in (*calls, *answered):
        link.sendall(bytes([rank]))
    vars(dist)["kept"] = calls, answered
    if forged:
        kernels = importlib.import_module("helpers.trace.kernels")
        groups = json.dumps(["groups", ["0", list(range(n))], ["mine", list(range(n))]]).encode()
        write = kernels._installed.recorder._write
        kernels._installed.recorder._write = lambda line: write(
            groups if line.startswith(b'["groups"') else line
        )
    return sorted(link.recv(1)[0] for link in (*calls, *answered))


@pytest.mark.parametrize("n", [2, 4])
def test_connections_of_its_own_are_noticed_however_little_they_carry(
    sandbox: Sandbox, n: int
) -> None:
    """But not where a group is forged that explains them: so `bypasses` says."""
    for forged in (False, True):
        found = run_on_ranks(own_links, Options(n), args=(forged,), connection=sandbox.connection)
        assert found.values == [[r for r in range(n) if r != rank] for rank in range(n)]
        assert ("connections are open" in mismatch(found)) is not forged, mismatch(found)


def test_sends_that_never_end_count_where_somebody_receives(sandbox: Sandbox) -> None:
    claimed = run(sandbox, "ring", 3, 50).trace
    open_ended = replace(claimed, events=tuple(replace(e, end_ns=None) for e in claimed))
    assert mismatch(replace(run(sandbox, "nothing", 3, 50), trace=open_ended)).startswith(LOOK)


def test_monitored_barriers_are_explained(sandbox: Sandbox) -> None:
    found = run_on_ranks(
        lambda rank, n: dist.monitored_barrier(), Options(2), connection=sandbox.connection
    )
    assert found.failure is None and mismatch(found) == ""


@pytest.mark.soak
@pytest.mark.timeout(900)
def test_no_right_answer_is_flagged(sandbox: Sandbox) -> None:
    sandbox.connection.preload()
    compared, told = 0, []
    for sample in (sample for sample in all_samples() if sample.right):
        exercise = get(sample.exercise)
        if exercise.kind not in {Kind.RANKS, Kind.MODULE} or exercise.own_network:
            continue
        answer = build_answer([PRELUDE, sample.source], sample.exercise)
        assert isinstance(answer, Answer), answer
        for case in grade(exercise, answer, str, connection=sandbox.connection).cases:
            assert case.passed and case.run is not None and case.run.traffic is not None, sample
            compared += 1
            if said := mismatch(case.run):
                told.append(f"{sample}, {case.label}: {said}")
    print(f"\n{compared} cases of right answers compared, {len(told)} flagged")
    assert not told, "\n".join(told)


def again(rank: int, n: int) -> float:
    for _ in range(3):
        dist.init_process_group("gloo")
        dist.destroy_process_group()
    dist.init_process_group("gloo")
    one = torch.ones(1)
    dist.all_reduce(one)
    return float(one)


def test_ranks_behind_walls_find_a_port_that_is_free_there(sandbox: Sandbox) -> None:
    run = run_on_ranks(again, Options(3, init=False), connection=sandbox.connection)
    assert run.values == [3.0] * 3, run.failure
