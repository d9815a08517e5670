"""The kernel's view of a waiting thread: its wait, and the deadline."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest

from helpers.ranks.threads import FOREVER, Thread, read_threads, thread_times

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="the kernel tells it on Linux")

LATE_S = 2.0
"""Maximum delay between the beginning of a wait and its observation on a busy machine."""

_HEAD = """
import asyncio, ctypes, multiprocessing, os, queue, select, socket, sys, threading, time
def others(count, work):
    for _ in range(count):
        threading.Thread(target=work, daemon=True).start()
print("begins", flush=True)
"""


@contextmanager
def child(program: str) -> Iterator[int]:
    """Run a program until the block ends. Yield its process id once it has begun."""
    process = subprocess.Popen(
        [sys.executable, "-c", _HEAD + program], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    try:
        assert process.stdout is not None
        assert process.stdout.readline() == b"begins\n"
        yield process.pid
    finally:
        process.kill()
        process.communicate()


def settled(pid: int, reached: Callable[[list[Thread]], bool]) -> list[Thread]:
    """Return the threads once they are as expected, or their state after some time."""
    deadline = time.monotonic() + 20
    while True:
        threads = read_threads(pid)
        if (threads and reached(threads)) or time.monotonic() > deadline:
            return threads
        time.sleep(0.02)


def resting(pid: int, reached: Callable[[list[Thread]], bool]) -> list[Thread]:
    """Return the threads once they are as expected and none of them has run for a while.

    A new thread waits in the same call as an established one: for Python's lock, and for a
    thread that it starts.
    """
    deadline = time.monotonic() + 20
    while True:
        before = settled(pid, reached)
        time.sleep(0.3)
        after = read_threads(pid)
        if (
            reached(after) and _switches(after) == _switches(before)
        ) or time.monotonic() > deadline:
            return after


def _switches(threads: list[Thread]) -> dict[int, int]:
    return {t.id: t.switches for t in threads}


FOR_ITS_OWN = [
    "a = threading.Lock(); a.acquire(); a.acquire()",
    "queue.Queue().get()",
    "queue.SimpleQueue().get()",
    "threading.Event().wait()",
    "threading.Barrier(2).wait()",
    "others(1, threading.Event().wait); threading.enumerate()[-1].join()",
]


@pytest.mark.parametrize("program", FOR_ITS_OWN)
def test_internal_wait_is_private_and_endless(program: str) -> None:
    with child(program) as pid:
        main = resting(pid, lambda some: some[0].call == "futex")[0]
        assert (main.id, main.state, main.call) == (pid, "S", "futex")
        assert main.ends_in_s == FOREVER and main.private
        time.sleep(0.2)
        assert read_threads(pid)[0].switches == main.switches, "nothing has run meanwhile"


FOR_A_WHILE = {
    "a = threading.Lock(); a.acquire(); a.acquire(timeout=100)": "futex",
    "queue.Queue().get(timeout=100)": "futex",
    "threading.Event().wait(100)": "futex",
    "select.poll().poll(100_000)": "poll",
    "select.epoll().poll(100)": "epoll_wait",
    "asyncio.run(asyncio.sleep(100))": "epoll_wait",
    "s = socket.socketpair(); s[0].settimeout(100); s[0].recv(1)": "poll",
}


@pytest.mark.parametrize("program", FOR_A_WHILE)
def test_reads_end_time_of_wait(program: str) -> None:
    call = FOR_A_WHILE[program]
    with child(program) as pid:
        main = resting(pid, lambda some: some[0].call == call)[0]
        assert main.call == call
        assert 100 - 20 - LATE_S < main.ends_in_s <= 100.1
        if call == "futex":  # these contain a point in time, not a duration
            time.sleep(0.5)
            later = read_threads(pid)[0].ends_in_s
            assert main.ends_in_s - LATE_S - 0.5 < later <= main.ends_in_s - 0.4


FOR_ANYBODY = {
    "select.poll().poll()": "poll",
    "select.epoll().poll()": "epoll_wait",
    "s = socket.socketpair(); s[0].recv(1)": "recvfrom",
}


@pytest.mark.parametrize("program", FOR_ANYBODY)
def test_external_wait_is_endless_and_nonprivate(program: str) -> None:
    call = FOR_ANYBODY[program]
    with child(program) as pid:
        main = resting(pid, lambda some: some[0].call == call)[0]
        assert (main.call, main.ends_in_s, main.private) == (call, FOREVER, False)
        assert (main.fd >= 3) == (call == "recvfrom")


def test_process_semaphore_wait_is_not_private() -> None:
    with child("multiprocessing.Semaphore(0).acquire()") as pid:
        main = resting(pid, lambda some: some[0].call == "futex")[0]
        assert (main.call, main.ends_in_s, main.private) == ("futex", FOREVER, False)
    with child("multiprocessing.Semaphore(0).acquire(timeout=100)") as pid:
        main = resting(pid, lambda some: some[0].call == "futex")[0]
        assert 70 < main.ends_in_s <= 100 and not main.private


NOTHING_KNOWN = [
    "select.select([0], [], [])",
    "select.select([], [], [], 100)",
    "import signal; signal.pause()",
    "os.waitpid(os.posix_spawn('/bin/sleep', ['sleep', '100'], {}), 0)",
]


@pytest.mark.parametrize("program", NOTHING_KNOWN)
def test_unknown_wait_has_empty_call_name(program: str) -> None:
    with child(program) as pid:
        main = resting(pid, lambda some: some[0].state == "S" and not some[0].call)[0]
        children = [int(word) for word in _read_children(pid)]
        assert (main.state, main.call, main.ends_in_s, main.private) == ("S", "", 0.0, False)
        for each in children:
            os.kill(each, signal.SIGKILL)


@pytest.mark.parametrize(
    ("program", "own"),
    [
        ("r, w = os.pipe(); os.read(r, 1)", True),
        ("os.mkfifo('fifo'); os.read(os.open('fifo', os.O_RDWR), 1)", False),
    ],
)
def test_only_nameless_pipe_read_is_private(program: str, own: bool) -> None:
    with child(f"import tempfile; os.chdir(tempfile.mkdtemp()); {program}") as pid:
        main = resting(pid, lambda some: some[0].call in {"read", "recvfrom"})[0]
        assert (main.ends_in_s, main.private) == (FOREVER, own)


def _read_children(pid: int) -> list[str]:
    with open(f"/proc/{pid}/task/{pid}/children") as file:
        return file.read().split()


def test_distinguishes_python_sleep_from_nanosleep() -> None:
    with child("time.sleep(100)") as pid:
        assert settled(pid, lambda some: some[0].call == "sleep")[0].call == "sleep"
    with child("ctypes.CDLL(None).usleep(90_000_000)") as pid:  # like torch's polling of a store
        main = settled(pid, lambda some: "nanosleep" in some[0].call)[0]
        assert main.call in {"nanosleep", "clock_nanosleep"} and main.ends_in_s == 0.0


def test_reads_running_and_stopped_states() -> None:
    with child("while True: pass") as pid:
        first = settled(pid, lambda some: some[0].state == "R")[0]
        assert (first.state, first.call) == ("R", "")
        os.kill(pid, signal.SIGSTOP)
        stopped = settled(pid, lambda some: some[0].state == "T")[0]
        assert (stopped.state, stopped.call) == ("T", "")
        os.kill(pid, signal.SIGCONT)
        assert settled(pid, lambda some: some[0].state == "R")[0].state == "R"


def test_lists_main_thread_first() -> None:
    program = "others(3, threading.Event().wait); others(2, lambda: time.sleep(100)); input()"
    with child(program) as pid:
        threads = resting(pid, lambda some: [t.state for t in some] == ["S"] * 6)
        assert threads[0].id == threads[0].inner == pid
        assert sorted(t.call for t in threads) == ["futex"] * 3 + ["read"] + ["sleep"] * 2


@pytest.mark.skipif(os.getuid() != 0, reason="only root may choose process ids")
def test_lists_main_thread_with_largest_id_first() -> None:
    program = """
import os, pathlib, subprocess, sys
largest = int(pathlib.Path("/proc/sys/kernel/pid_max").read_text()) - 1
pathlib.Path("/proc/sys/kernel/ns_last_pid").write_text(str(largest - 1))
code = "import threading; threading.Thread(target=threading.Event().wait, daemon=True).start(); input()"
process = subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE)
from helpers.ranks.threads import read_threads
while len(threads := read_threads(process.pid)) < 2:
    pass
process.communicate(b"end\\n")
print(largest, process.pid, *(thread.id for thread in threads))
"""
    in_own_namespace = ["unshare", "--pid", "--fork", "--mount-proc", "--kill-child"]
    done = subprocess.run(
        [*in_own_namespace, sys.executable, "-c", program],
        capture_output=True,
        text=True,
        timeout=60,
    )
    if "unshare" in done.stderr:
        pytest.skip(done.stderr)
    largest, main, first, second = map(int, done.stdout.split())
    assert largest == main == first > second


def test_counts_switches_only_of_running_threads() -> None:
    with child("others(1, threading.Event().wait)\nwhile True: time.sleep(0.001)") as pid:
        settled(pid, lambda some: len(some) == 2 and some[1].call == "futex")
        time.sleep(0.3)  # before it begins, it waits for Python's lock by the same call
        before = _switches(read_threads(pid))
        time.sleep(0.3)
        after = _switches(read_threads(pid))
        assert after.pop(pid) > before.pop(pid)
        assert after == before


def test_measures_running_and_queued_time() -> None:
    with child("while True: pass") as pid:
        ran, queued, _ = thread_times(pid)
        time.sleep(0.5)
        more, longer, _ = thread_times(pid)
        assert more > ran and longer >= queued
        assert more - ran + longer - queued > 0.3e9, "it either runs or is in the queue"
    with child("time.sleep(100)") as pid:
        resting(pid, lambda some: some[0].call == "sleep")
        before = thread_times(pid)
        time.sleep(0.3)
        assert thread_times(pid)[0] - before[0] < 0.05e9


def test_nonexistent_process_has_no_threads() -> None:
    assert read_threads(0) == [] and read_threads(2**22 + 1) == []
    assert thread_times(2**22 + 1) == (0, 0, 0)
