"""Records reach the launcher through memory: they arrive whole, or are counted if there is no room."""

from __future__ import annotations

import mmap
import os
import signal
import struct
import threading
from collections.abc import Iterator

import pytest
import torch
import torch.distributed as dist

from helpers.ranks.failures import RankDied
from helpers.ranks.launcher import launch
from helpers.trace import collector as collector_module
from helpers.trace import log as module
from helpers.trace.collector import Collector
from helpers.trace.events import Place
from helpers.trace.log import Log, Logs


@pytest.fixture
def logs(monkeypatch: pytest.MonkeyPatch) -> Iterator[Logs]:
    """Yield logs with slices of one page, which are soon full."""
    monkeypatch.setattr(module, "SLICE_BYTES", mmap.PAGESIZE)
    made = Logs(3)
    yield made
    made.close()


def test_separates_lines_of_each_rank(logs: Logs) -> None:
    ranks = [Log(logs.fd, rank) for rank in range(3)]
    for number in range(5):
        for rank, each in enumerate(ranks):
            each.write(b"%d of %d" % (number, rank))
    for rank in range(3):
        assert logs.read(rank) == [b"%d of %d" % (number, rank) for number in range(5)]
        assert logs.read(rank) == []
    ranks[1].write(b"more")
    assert [logs.read(rank) for rank in range(3)] == [[], [b"more"], []]


def test_defers_incomplete_line(logs: Logs) -> None:
    rank = Log(logs.fd, 0)
    rank.write(b"whole")
    rank.write(b"half a line")
    os.pwrite(logs.fd, struct.pack("=QQ", len(b"whole\nhalf"), 0), 0)
    assert logs.read(0) == [b"whole"]
    assert logs.read(0) == []
    os.pwrite(logs.fd, struct.pack("=QQ", len(b"whole\nhalf a line\n"), 0), 0)
    assert logs.read(0) == [b"half a line"]


def test_counts_lost_lines_of_full_log(logs: Logs) -> None:
    rank = Log(logs.fd, 2)
    line = b"x" * 99
    room = (mmap.PAGESIZE - 16) // 100
    for _ in range(room + 7):
        rank.write(line)
    rank.write(b"short enough")
    assert logs.read(2) == [line] * room + [b"short enough"]
    assert logs.lost_count(2) == 7 and logs.lost_count(0) == logs.lost_count(1) == 0


def test_drops_and_counts_oversized_line(logs: Logs) -> None:
    rank = Log(logs.fd, 1)
    rank.write(b"x" * (2 * mmap.PAGESIZE))
    rank.write(b"after")
    assert (logs.read(1), logs.lost_count(1)) == ([b"after"], 1)


def test_rewinds_full_slices_between_tasks(logs: Logs) -> None:
    ranks = [Log(logs.fd, rank) for rank in range(3)]
    ranks[0].write(b"first")
    assert logs.read(0) == [b"first"]
    assert not logs.rewind_if_full(), "there is room enough"
    ranks[0].write(b"x" * (mmap.PAGESIZE // 2))
    ranks[2].write(b"of another")
    assert [len(logs.read(rank)) for rank in range(3)] == [1, 0, 1]
    assert logs.rewind_if_full()
    assert [logs.read(rank) for rank in range(3)] == [[], [], []]
    for rank in ranks:
        rank.rewind()
        rank.write(b"again")
    assert [logs.read(rank) for rank in range(3)] == [[b"again"]] * 3
    assert not logs.rewind_if_full()


def test_concurrent_writers_lose_no_line() -> None:
    logs = Logs(1)
    try:
        rank = Log(logs.fd, 0)

        def write(writer: int) -> None:
            for number in range(2000):
                rank.write(b"%d %d" % (writer, number))

        threads = [threading.Thread(target=write, args=(writer,)) for writer in range(4)]
        for thread in threads:
            thread.start()
        lines = []
        while any(thread.is_alive() for thread in threads):
            lines += logs.read(0)
        lines += logs.read(0)
        for writer in range(4):
            mine = [line for line in lines if line.startswith(b"%d " % writer)]
            assert mine == [b"%d %d" % (writer, number) for number in range(2000)]
    finally:
        logs.close()


HOSTILE = [
    struct.pack("=QQ", 2**64 - 1, 2**64 - 1),
    struct.pack("=QQ", 2**63, 0),
    struct.pack("=QQ", 17, 0),
    b"\xff" * 16,
    b"",
]


@pytest.mark.parametrize("head", HOSTILE)
def test_false_head_harms_only_own_rank(logs: Logs, head: bytes) -> None:
    liar, honest = Log(logs.fd, 0), Log(logs.fd, 1)
    liar.write(b"true")
    honest.write(b"true")
    os.pwrite(logs.fd, head, 0)
    assert all(len(line) <= mmap.PAGESIZE for line in logs.read(0))
    assert sum(map(len, logs.read(0))) <= mmap.PAGESIZE
    assert logs.read(1) == [b"true"] and logs.lost_count(1) == 0


def test_backward_log_head_repeats_no_line(logs: Logs) -> None:
    rank = Log(logs.fd, 0)
    rank.write(b"one")
    rank.write(b"two")
    assert len(logs.read(0)) == 2
    os.pwrite(logs.fd, struct.pack("=QQ", 4, 0), 0)
    assert logs.read(0) == []


def test_rank_cannot_resize_log_memory() -> None:
    if not hasattr(os, "memfd_create"):
        pytest.skip("seals are Linux's")
    logs = Logs(2)
    try:
        for size in (0, 1 << 40):
            with pytest.raises(PermissionError):
                os.ftruncate(logs.fd, size)
    finally:
        logs.close()


NONSENSE = [
    b"",
    b"null",
    b"[]",
    b"{}",
    b'"call"',
    b'["call"]',
    b'["no such record", 1, 2, 3]',
    b'["__init__", 1]',
    b'["call", 0, 0, "", 0, 0, "", [], {}]',
    b'["site", 0, "no such op", "x", null]',
    b'["site", 0, "send", "x", ["f", "not a line", "g"]]',
    b'["end", 5, 1, "", null]',
    b'["wait", -1, 1]',
    b'["group", "g", 5]',
    b'["group", "g", ["a"]]',
    b'["site", 1e999, "send", "x", null]',
    b"[" * 100_000,
    b"\xff\xfe",
    b'["wait", [1], 1]',
    b"1], [2",
]


@pytest.mark.parametrize("line", NONSENSE)
def test_drops_invalid_record_line(line: bytes) -> None:
    collector = Collector(2, lambda file, at, function: Place(file, at, function))
    good = [
        b'["site", 9, "send", "isend", ["f", 3, "g"]]',
        b'["call", 0, 9, "pg", 10, 4, "float32", [[1]], {"peer": 1}]',
        b'["end", 0, 20, "", null]',
    ]
    collector.feed(0, [line, *good, line])
    collector.feed(1, good)
    assert len(collector.trace()) == 2
    assert all(event.finished for event in collector.trace())
    assert not collector.unfinished_calls(0) and collector.blocking_call(0) is None


@pytest.mark.extended
def test_stops_reading_flood_of_invalid_lines() -> None:
    collector = Collector(2, lambda file, at, function: Place(file, at, function))
    good = [b'["site", 9, "send", "isend", null]', b'["call", 0, 9, "pg", 10, 4, "", [], {}]']
    collector.feed(0, [b"[1"] * 200_001)
    changes = collector.change_count
    collector.feed(0, good)
    collector.feed(1, good)
    assert [event.rank for event in collector.trace()] == [1]
    assert collector.dropped == 200_003 and collector.change_count > changes


LATER = [
    b'["call", 1, 9, "pg", "not a time", 4, "float32", [[1]], {}]',
    b'["call", 1, 9, "pg", 10, "many", "float32", [[1]], {}]',
    b'["call", 1, 9, "pg", 10, 4, "float32", 7, {}]',
    b'["call", 1, 9, "pg", 10, 4, "float32", [[1]], []]',
    b'["call", 1, 9, "pg", 10, 4, "float32", [[1]], {"peer": "x"}]',
    b'["call", 1, 9, "pg", 10, 4]',
    b'["call", {}, 9, "pg", 10, 4, "float32", [[1]], {}]',
    b'["call", "1", 9, ["pg"], 10, 4, "float32", [[1]], {}]',
]


@pytest.mark.parametrize("line", LATER)
def test_invalid_call_loses_only_own_event(line: bytes) -> None:
    collector = Collector(1, lambda file, at, function: Place(file, at, function))
    collector.feed(0, [b'["site", 9, "send", "isend", null]', line])
    collector.feed(0, [b'["call", 2, 9, "pg", 10, 4, "float32", [[1]], {}]'])
    assert [event.seq for event in collector.trace()] == [2]
    collector.unfinished_calls(0)
    collector.blocking_call(0)


# --- on real ranks ------------------------------------------------------------------------------------


@pytest.mark.sample(1)
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGABRT, signal.SIGSEGV])
def test_keeps_records_of_killed_rank(number: signal.Signals) -> None:
    def talk(rank: int, n: int) -> None:
        for _ in range(3):
            dist.all_reduce(torch.ones(2))
        if rank == 1:
            os.kill(os.getpid(), number)
        dist.barrier()

    run = launch(talk, 2, on_failure="return")
    assert isinstance(run.failure, RankDied), run.failure
    reduced = [event for event in run.trace.of(1) if event.op == "all_reduce"]
    assert len(reduced) == 3 and all(event.end_ns for event in reduced)


def test_identifies_unfinished_call_of_killed_rank() -> None:
    def talk(rank: int, n: int) -> None:
        if rank == 0:
            threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGKILL)).start()
            dist.recv(torch.ones(1), 1)

    run = launch(talk, 2, on_failure="return")
    (recv,) = run.trace.of(0)
    assert (recv.op, recv.end_ns) == ("recv", None)


def test_rank_threads_record_simultaneously() -> None:
    def talk(rank: int, n: int) -> None:
        from helpers.ranks.rank_context import span

        def work() -> None:
            for _ in range(500):
                with span("s"):
                    pass

        threads = [threading.Thread(target=work) for _ in range(4)]
        for thread in threads:
            thread.start()
        for _ in range(50):
            dist.all_reduce(torch.ones(1))
        for thread in threads:
            thread.join()

    trace = launch(talk, 2).trace
    assert (len(trace.calls), len(trace.spans), trace.dropped) == (100, 4000, 0)
    assert all(event.end_ns is not None for event in trace)


def test_forked_child_records_nothing() -> None:
    def talk(rank: int, n: int) -> None:
        from helpers.ranks.rank_context import span

        with span("before"):
            pass
        child = os.fork()
        if child == 0:
            try:
                with span("in the child"):
                    pass
            finally:
                os._exit(0)
        os.waitpid(child, 0)
        with span("after"):
            pass

    trace = launch(talk, 2).trace
    assert [event.call for event in trace.of(0)] == ["before", "after"]
    assert trace.dropped == 0


def test_ring_keeps_last_records(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "SLICE_BYTES", mmap.PAGESIZE)
    logs = Logs(1, confirms=True)
    try:
        rank, written, read = Log(logs.fd, 0), [], []
        for i in range(2_000):
            written.append(b"record %d" % i)
            rank.write(written[-1])
            if i % 100 == 0:
                read += logs.read(0)
        assert read + logs.read(0) == written
        assert logs.lost_count(0) == 0
        for _ in range(1_000):
            rank.write(b"unread record")
        assert logs.lost_count(0) == 1_000 - len(logs.read(0)) > 0
    finally:
        logs.close()


def test_drops_matching_ended_calls_together(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(collector_module, "KEPT_CALLS", 10)
    collector = Collector(2, lambda file, at, function: Place(file, at, function))
    for rank in range(2):
        collector.feed(rank, [b'["site",0,"all_reduce","all_reduce",null,""]'])
    for seq in range(12):
        for rank in range(2 if seq < 11 else 1):
            call = b'["call",%d,0,"g",%d,4,"float32",[[1]],{}]' % (seq, seq + 1)
            collector.feed(rank, [call, b'["end",%d,%d,"",null]' % (seq, seq + 2)][: 2 - (seq > 9)])
    collector.drop_ended_calls()
    assert [(event.rank, event.seq) for event in collector.trace()] == [(0, 10), (0, 11), (1, 10)]
    assert (collector.left_out, collector.dropped) == (20, 0)
    collector.feed(0, [b'["wait",3,20]'])
    assert collector.dropped == 0
    assert collector.blocking_call(0) is not None
