"""Idle threads are recognized, and no thread that may help another rank is taken for an idle one."""

from __future__ import annotations

import collections
import datetime
import io
import math
import queue
import random
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from msgspec import DecodeError, json

from helpers.ranks.status import Status, _harmless_threads, status

_ends = threading.Event()
_seen: list[float] = []
_total = 0
_queue: queue.Queue[int] = queue.Queue()
_beats = {"count": 0}


@contextmanager
def running(thread: threading.Thread) -> Iterator[bool]:
    """Start a thread, yield whether it is reported as idle, and let it end."""
    _ends.clear()
    thread.daemon = True
    thread.start()
    try:
        time.sleep(0.05)  # by then it has usually reached its first wait, but nothing depends on it
        yield thread.native_id in _named()
    finally:
        _ends.set()
        thread.join(5)


def _named(stdout: Any = None, excepthook: Any = threading.__excepthook__) -> list[int]:
    """Query with a rank's stdout and hook instead of pytest's, which may do anything."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "stdout", stdout or io.TextIOWrapper(io.BytesIO()))
        patch.setattr(threading, "excepthook", excepthook)
        return _harmless_threads()


def named(work: Callable[..., Any], *args: Any) -> bool:
    with running(threading.Thread(target=work, args=args)) as found:
        return found


# --- idle threads ---------------------------------------------------------------------------------


def sleeps_and_appends() -> None:
    while not _ends.is_set():
        time.sleep(0.01)
        _seen.append(time.monotonic())


def waits_for_the_end() -> None:
    _ends.wait()


def prints_now_and_then() -> None:
    while not _ends.wait(0.01):
        _beats["count"] += 1
        if _beats["count"] < 0:
            print(f"beat {_beats['count']}: {math.sqrt(2):.2f}", flush=True)


def calls_a_function_of_its_own() -> None:
    while not _ends.is_set():
        _nap(0.01)


def _nap(seconds: float) -> None:
    time.sleep(seconds + random.random() / 100)


def counts() -> None:
    global _total
    while not _ends.is_set():
        _total += 1
        time.sleep(0.01)


def has_been_given_plain_values(seconds: float, log: list[Any], limits: dict[str, float]) -> None:
    import time as clock

    while not _ends.is_set():
        clock.sleep(seconds)
        log.append((datetime.datetime.now(), limits.get("most", 0)))


def test_reports_threads_unable_to_wake_others() -> None:
    assert named(sleeps_and_appends)
    assert named(waits_for_the_end)
    assert named(calls_a_function_of_its_own)
    assert named(counts)
    assert named(has_been_given_plain_values, 0.01, [collections.deque([1])], {"most": 2.0})


class Tee(io.StringIO):
    """Replaces stdout, and may do anything with the printed text."""


def test_omits_thread_printing_to_replaced_stream() -> None:
    thread = threading.Thread(target=prints_now_and_then)
    with running(thread) as found:
        assert found
        assert thread.native_id in _named(io.StringIO())
        assert thread.native_id not in _named(Tee())


def test_reports_idle_closure_over_plain_values() -> None:
    beats, pause = [0], 0.01

    def beat() -> None:
        while not _ends.is_set():
            beats[0] += 1
            time.sleep(pause)

    assert named(beat)


def test_reports_progress_bar_monitor_thread() -> None:
    tqdm = pytest.importorskip("tqdm")
    bar = tqdm.tqdm(total=3, file=io.StringIO())
    try:
        monitor = next(t for t in threading.enumerate() if type(t).__name__ == "TMonitor")
        assert monitor.native_id in _named()
    finally:
        bar.close()
        monitor.exit()
        tqdm.tqdm.monitor = None


# --- threads that may help another rank --------------------------------------------------------------


class Own:
    """A learner's object, whose methods have harmless names."""

    def append(self, value: float) -> None:
        _queue.put(1)

    def __iadd__(self, other: int) -> Own:
        _queue.put(1)
        return self

    def __len__(self) -> int:
        _queue.put(1)
        return 0

    def __str__(self) -> str:
        _queue.put(1)
        return ""

    def beat(self) -> None:
        while not _ends.is_set():
            time.sleep(0.01)


class OwnEvent(threading.Event):
    def wait(self, timeout: float | None = None) -> bool:
        _queue.put(1)
        return super().wait(timeout)


_own, _own_event, _released = Own(), OwnEvent(), threading.Event()
_condition = threading.Condition()


def puts() -> None:
    while not _ends.wait(0.01):
        _queue.put(1)


def sets_an_event() -> None:
    _ends.wait()
    _released.set()


def comes_to_a_barrier(barrier: threading.Barrier) -> None:
    _ends.wait()
    barrier.wait(0.01)


def comes_to_one_of_many(barriers: list[threading.Barrier]) -> None:
    _ends.wait()
    for barrier in barriers:
        barrier.wait(0.01)


def appends_to_an_object(log: Own) -> None:
    while not _ends.wait(0.01):
        log.append(1)


def adds_to_an_object(log: Own) -> None:
    while not _ends.wait(0.01):
        log += 1


def adds_to_a_global_object() -> None:
    global _own
    while not _ends.wait(0.01):
        _own += 1


def measures_an_object(logs: list[Own]) -> None:
    while not _ends.wait(0.01):
        sum(map(len, logs))  # type: ignore[arg-type]


def writes_an_object() -> None:
    while not _ends.wait(0.01):
        str(_own)


def waits_for_its_own_event() -> None:
    while not _ends.is_set():
        _own_event.wait(0.01)


def holds_a_lock(lock: threading.Lock) -> None:
    with lock:
        _ends.wait()


def exits() -> None:
    import os

    _ends.wait()
    if _total < 0:
        os._exit(3)


def calls_what_it_was_given(call: Callable[[], None]) -> None:
    while not _ends.wait(0.01):
        call()


def defines_functions() -> None:
    inner = lambda: _queue.put(1)  # noqa: E731
    while not _ends.wait(0.01):
        inner()


def puts_by_way_of_a_default(box: Any = _queue) -> None:
    if _total < 0:
        box.put(1)


def calls_with_defaults() -> None:
    while not _ends.wait(0.01):
        puts_by_way_of_a_default()


def sends() -> None:
    import torch.distributed as dist

    _ends.wait()
    if _total < 0:
        dist.barrier()


def opens_a_file() -> None:
    while not _ends.wait(0.01):
        open("/dev/null").close()


def notifies() -> None:
    while not _ends.wait(0.01):
        with _condition:
            _condition.notify_all()


def deletes_what_may_speak_then(box: dict[str, Own]) -> None:
    _ends.wait()
    box["own"] = Own()


MAY_ACT: list[tuple[Callable[..., Any], tuple[Any, ...]]] = [
    (puts, ()),
    (sets_an_event, ()),
    (comes_to_a_barrier, (threading.Barrier(2),)),
    (comes_to_one_of_many, ([threading.Barrier(2)],)),
    (appends_to_an_object, (Own(),)),
    (adds_to_an_object, (Own(),)),
    (adds_to_a_global_object, ()),
    (measures_an_object, ([Own()],)),
    (writes_an_object, ()),
    (waits_for_its_own_event, ()),
    (holds_a_lock, (threading.Lock(),)),
    (exits, ()),
    (calls_what_it_was_given, (puts_by_way_of_a_default,)),
    (defines_functions, ()),
    (calls_with_defaults, ()),
    (sends, ()),
    (opens_a_file, ()),
    (notifies, ()),
    (deletes_what_may_speak_then, ({},)),
    (_own.beat, ()),
    (_ends.wait, ()),
]


@pytest.mark.parametrize(("work", "args"), MAY_ACT, ids=[work.__name__ for work, _ in MAY_ACT])
@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
def test_omits_threads_able_to_wake_others(work: Callable[..., Any], args: tuple[Any]) -> None:
    assert not named(work, *args)


def test_omits_timer_thread() -> None:
    timer = threading.Timer(30, print)
    try:
        with running(timer) as found:
            assert not found
            timer.cancel()
    finally:
        timer.cancel()


def test_omits_thread_calling_replaced_function(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(time, "monotonic", lambda: _queue.put(1))
    assert not named(sleeps_and_appends)


def test_distinguishes_closures_of_one_function() -> None:
    def make(box: Any) -> Callable[[], None]:
        def read_status() -> None:
            time.sleep(0.001)
            if _total < 0:
                box.append(1)

        return read_status

    first, second = make([]), make(Own())

    def beat() -> None:
        while not _ends.is_set():
            first()
            second()

    assert not named(beat)


def test_omits_thread_awaited_by_another() -> None:
    sleeper = threading.Thread(target=waits_for_the_end, daemon=True)
    joiner = threading.Thread(target=lambda: sleeper.join(), daemon=True)
    with running(sleeper) as found:
        assert found
        joiner.start()
        time.sleep(0.1)
        assert sleeper.native_id not in _named()


def test_omits_threads_with_replaced_exception_hook() -> None:
    thread = threading.Thread(target=waits_for_the_end)
    with running(thread) as found:
        assert found
        assert thread.native_id not in _named(excepthook=lambda _: _queue.put(1))


def test_omits_thread_with_oversized_data() -> None:
    assert not named(has_been_given_plain_values, 0.01, [0] * 1_000_000, {})
    within: list[Any] = []
    within.append(within)
    assert not named(has_been_given_plain_values, 0.01, within, {})


def test_status_reports_line_and_idle_threads() -> None:
    said = status(threading.main_thread().ident or 0, 7)
    assert said.at is not None and said.at[0] == __file__ and said.inside == ""
    assert said.meets == "" and said.needs == () and 7 in said.idle
    assert json.decode(json.encode(said), type=Status) == said


@pytest.mark.parametrize(
    "body",
    [
        b'{"inside": 3}',
        b'{"at": ["f", "line", "g"]}',
        b'{"needs": [0, "1"]}',
        b'{"idle": {"7": 1}}',
        b'{"keys": {"call": "get"}}',
        json.encode({"inside": "x" * 81}),
        json.encode({"needs": [0] * 1025}),
        json.encode({"others": [["name", ["f", 1, "g"]]] * 9}),
        b"[" * 100_000,
    ],
)
def test_refuses_hostile_reports(body: bytes) -> None:
    with pytest.raises((DecodeError, RecursionError)):
        json.decode(body, type=Status)
