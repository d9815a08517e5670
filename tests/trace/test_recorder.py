"""Every way of communicating is recorded, and recording never hangs a run."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
import torch
import torch.distributed as dist

from helpers.ranks.display import NoDisplay
from helpers.ranks.launch_options import Caller, Options, Task
from helpers.ranks.launcher import connect, execute, launch, run_on_ranks
from helpers.ranks.rank_context import span
from helpers.ranks.world import World
from helpers.trace.c10d_ops import OPS
from tests.trace.programs import WAYS, reduce_scattered

RUNS = 10

pytestmark = pytest.mark.usefixtures("preloaded")


@contextmanager
def busy_cores(count: int = 2) -> Iterator[None]:
    """Keep `count` cores busy during the block, like a class on one machine."""
    loop = "import time; end = time.time() + 600\nwhile time.time() < end: pass"
    workers = [subprocess.Popen([sys.executable, "-c", loop]) for _ in range(count)]
    try:
        yield
    finally:
        for worker in workers:
            worker.kill()
            worker.wait(5)


def test_records_every_torch_process_group_op() -> None:
    schemas = [s for s in torch._C._jit_get_all_schemas() if s.name.startswith("c10d::")]
    of_groups = [s for s in schemas if any("ProcessGroup" in str(a.type) for a in s.arguments)]
    assert {s.name.removeprefix("c10d::") for s in of_groups} == set(OPS)


@pytest.mark.sample(4)
@pytest.mark.parametrize("way", WAYS)
def test_records_every_communication_method(way: str) -> None:
    program, ops = WAYS[way]
    run = launch(program, 2, timeout=60)
    assert ops <= {event.op for event in run.trace}, [e.op for e in run.trace]
    for rank in (0, 1):
        assert run.trace.of(rank)
    for event in run.trace:
        assert event.end_ns is not None and event.end_ns >= event.start_ns, event
        assert event.where is not None and event.where.file == __file__.replace(
            "test_recorder", "programs"
        ), event
    assert not run.trace.dropped
    plain = launch(program, 2, timeout=60, trace=False)
    assert plain.values == run.values, "recording changed what the program computes"
    assert not plain.trace


def test_records_functional_reduce_scatter() -> None:
    run = launch(reduce_scattered, 2, timeout=60)
    assert run.values == [[0.0, 2.0], [4.0, 6.0]]
    assert [event.op for event in run.trace] == ["reduce_scatter"] * 2


@pytest.mark.sample(1)
@pytest.mark.parametrize(
    "way",
    [
        pytest.param(way, marks=() if way in {"ddp", "asynchronous"} else pytest.mark.extended)
        for way in WAYS
    ],
)
def test_recording_under_load_never_hangs(way: str) -> None:
    with busy_cores():
        for _ in range(RUNS):
            launch(WAYS[way][0], 2, timeout=60)


@pytest.mark.soak
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("way", WAYS)
def test_200_recordings_under_load_never_hang(way: str) -> None:
    started = time.monotonic()
    with busy_cores():
        for _ in range(20 * RUNS):
            launch(WAYS[way][0], 2, timeout=60)
    print(f"\n{way}: {20 * RUNS} runs under load, {time.monotonic() - started:.0f} s, no hang")


def test_call_ends_upon_work_completion() -> None:
    def overlap(rank: int, world_size: int) -> None:
        x = torch.ones(4)
        if rank == 1:
            time.sleep(0.3)
        work = dist.all_reduce(x, async_op=True)
        with span("compute"):
            time.sleep(0.1)
        work.wait()

    run = launch(overlap, 2)
    reduce, compute = run.trace.of(0)
    assert reduce.asynchronous and reduce.end_ns and reduce.wait_ns and compute.end_ns
    assert compute.op == "span" and compute.call == "compute"
    assert reduce.start_ns <= compute.start_ns < compute.end_ns <= reduce.wait_ns
    assert reduce.end_ns - reduce.start_ns > 150_000_000, "rank 1 came 0.3 s later"


def test_events_record_peer_tag_and_group() -> None:
    def talk(rank: int, world_size: int) -> None:
        group = dist.new_group([0, 2])
        if rank == 2:
            dist.isend(torch.ones(2, 3, dtype=torch.float64), 0, tag=5).wait()
        if rank == 0:
            dist.recv(torch.ones(2, 3, dtype=torch.float64), tag=5)
        if rank != 1:
            dist.broadcast(torch.ones(7), 2, group=group)
        dist.reduce(torch.ones(1), 1, op=dist.ReduceOp.MAX)

    run = launch(talk, 3)
    recv, broadcast, reduce = run.trace.of(0)
    send = run.trace.of(2)[0]
    assert (send.op, send.call, send.peer, send.tag, send.nbytes) == ("send", "isend", 0, 5, 48)
    assert (send.dtype, send.shapes, send.asynchronous) == ("float64", ((2, 3),), True)
    assert (recv.op, recv.peer, recv.asynchronous) == ("recv", 2, False), (
        "the sender is known at the end"
    )
    assert (broadcast.root, broadcast.group_ranks) == (2, (0, 2))
    assert (reduce.root, reduce.reduce_op, reduce.group_ranks) == (1, "MAX", (0, 1, 2))
    assert send.where is not None and send.where.source.strip().startswith("dist.isend(")
    (message,) = run.trace.messages()
    assert (message.src, message.dst, message.recv) == (2, 0, recv)


def test_object_collectives_keep_public_name() -> None:
    def talk(rank: int, world_size: int) -> list[object]:
        out: list[object] = [None] * world_size
        dist.all_gather_object(out, {"rank": rank})
        return out

    run = launch(talk, 2)
    assert run.values[0] == [{"rank": 0}, {"rank": 1}]
    assert {event.call for event in run.trace} == {"all_gather_object"}
    assert {event.op for event in run.trace} == {"all_gather"}


@pytest.mark.extended
def test_truncates_and_counts_very_long_trace() -> None:
    def chatter(rank: int, world_size: int) -> None:
        for _ in range(60_000):
            with span("s"):
                pass

    run = launch(chatter, 1, timeout=60)
    assert run.trace.dropped > 0 and len(run.trace) <= 50_000


@pytest.mark.extended
def test_loses_no_event_under_heavy_recording() -> None:
    def many(rank: int, world_size: int) -> None:
        for _ in range(20_000):
            with span("work"):
                pass

    for _ in range(3):
        trace = launch(many, 2, timeout=60).trace
        assert (len(trace), trace.dropped) == (40_000, 0)
        assert all(event.end_ns is not None for event in trace)


@pytest.mark.extended
def test_live_tasks_have_separate_event_limits() -> None:
    server = connect()
    server.wait_until_ready()
    world = World(server, Options(1).resolve(), Caller())
    source = (
        "from helpers.ranks.rank_context import span\n"
        "for _ in range(30_000):\n"
        "    with span('s'):\n"
        "        pass\n"
    )
    try:
        for _ in range(3):
            task = Task(source=source, file="cell")
            assert execute(world, task, [(b"",)], 60, NoDisplay(), keep_alive=True) is None
            trace = world.collector.trace()
            assert (len(trace), trace.dropped) == (30_000, 0)
    finally:
        world.end()


@pytest.mark.extended
def test_forked_child_enters_span_of_thread() -> None:
    def fork_often(rank: int, world_size: int) -> int:
        over = threading.Event()

        def work() -> None:
            while not over.is_set():
                with span("in a thread"):
                    pass

        threading.Thread(target=work).start()
        for _ in range(20):
            child = os.fork()
            if child == 0:
                try:
                    with span("in the child"):
                        pass
                finally:
                    os._exit(0)
            os.waitpid(child, 0)
        over.set()
        return rank

    run = launch(fork_often, 2, timeout=60)
    assert run.values == [0, 1]
    assert {event.call for event in run.trace} == {"in a thread"}


def _meets(rank: int, world_size: int) -> None:
    x = torch.tensor([rank + 1.0])
    dist.all_reduce(x)
    everyone = [torch.zeros(1) for _ in range(world_size)]
    dist.all_gather(everyone, x * (rank + 1))
    if rank == 0:
        dist.send(torch.tensor([5, 6]), 1)
    else:
        work = dist.irecv(torch.zeros(2, dtype=torch.int64), 0)
        assert work is not None
        work.wait()


@pytest.mark.extended
def test_watched_runs_record_tensor_values() -> None:
    run = run_on_ranks(_meets, Options(2, record_values=True))
    seen = {(e.rank, e.op): (e.before, e.after) for e in run.trace}
    assert seen[0, "all_reduce"] == ("[1]", "[3]") and seen[1, "all_reduce"] == ("[2]", "[3]")
    assert seen[1, "all_gather"] == ("[6]", "[3], [6]")
    assert seen[0, "send"][0] == "[5 6]"
    assert seen[1, "recv"] == ("[0 0]", "[5 6]")
    assert not any(e.before or e.after for e in run_on_ranks(_meets, Options(2)).trace)
