"""Polling background threads: some cannot help a waiting rank, and others communicate in the end."""

from __future__ import annotations

import asyncio
import logging
import logging.handlers
import os
import queue
import select
import sqlite3
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from typing import Any

import torch
import torch.distributed as dist

Start = Callable[[float], object]
QUIET: dict[str, Start] = {}
HELPING: dict[str, Start] = {}


def quiet(start: Start) -> Start:
    QUIET[start.__name__] = start
    return start


def helping(start: Start) -> Start:
    HELPING[start.__name__] = start
    return start


def run_thread(work: Callable[..., object], *args: Any) -> None:
    threading.Thread(target=work, args=args, daemon=True).start()


class Logger:
    """Takes numbers from a queue, like loggers of metrics."""

    def __init__(self) -> None:
        self.queue: queue.Queue[float] = queue.Queue()
        self.rows: list[str] = []
        run_thread(self.loop)

    def loop(self) -> None:
        while True:
            try:
                value = self.queue.get(timeout=0.05)
            except queue.Empty:
                continue
            self.write(value)

    def write(self, value: float) -> None:
        self.rows.append(f"{value:.2f}")


@quiet
def logger_with_a_queue(delay: float) -> None:
    Logger().queue.put(1.0)


class Writer(threading.Thread):
    """Writes events into a file, and flushes it now and then, like TensorBoard's writers."""

    def __init__(self) -> None:
        super().__init__(daemon=True)
        self.file = tempfile.TemporaryFile()  # noqa: SIM115
        self.events: queue.Queue[bytes] = queue.Queue(10)
        self.next_flush = 0.0

    def run(self) -> None:
        while True:
            try:
                self.file.write(self.events.get(True, max(0.01, self.next_flush - time.time())))
            except queue.Empty:
                pass
            finally:
                if time.time() > self.next_flush:
                    self.file.flush()
                    self.next_flush = time.time() + 0.05


@quiet
def writer_of_events(delay: float) -> None:
    Writer().start()


@quiet
def event_with_a_timeout(delay: float) -> None:
    done, counts = threading.Event(), {"beats": 0}

    def beat() -> None:
        while not done.wait(0.05):
            counts.update(beats=counts["beats"] + 1)

    run_thread(beat)


@quiet
def condition_with_a_timeout(delay: float) -> None:
    ready = threading.Condition()

    def wait() -> None:
        with ready:
            while True:
                ready.wait(0.05)

    run_thread(wait)


@quiet
def sleeper_that_writes_to_stderr(delay: float) -> None:
    def beat() -> None:
        while True:
            time.sleep(0.05)
            sys.stderr.write("")
            sys.stderr.flush()

    run_thread(beat)


@quiet
def select_with_a_timeout(delay: float) -> None:
    reader, _ = os.pipe()

    def poll() -> None:
        while not select.select([reader], [], [], 0.05)[0]:
            pass

    run_thread(poll)


@quiet
def database_that_is_polled(delay: float) -> None:
    def poll() -> None:
        base = sqlite3.connect(":memory:")
        while True:
            base.execute("select 1").fetchall()
            time.sleep(0.05)

    run_thread(poll)


@quiet
def memory_that_is_watched(delay: float) -> None:
    tensor = torch.ones(3)

    def watch() -> None:
        while True:
            time.sleep(0.05)
            tensor.abs().max().item()

    run_thread(watch)


@quiet
def listener_for_log_records(delay: float) -> None:
    records: queue.Queue[logging.LogRecord] = queue.Queue()
    logging.handlers.QueueListener(records, logging.StreamHandler()).start()


@quiet
def loop_of_asyncio(delay: float) -> None:
    async def beat() -> None:
        while True:
            await asyncio.sleep(0.05)

    run_thread(asyncio.run, beat())


@quiet
def two_threads_at_once(delay: float) -> None:
    logger_with_a_queue(delay)
    writer_of_events(delay)


# --- threads that communicate --------------------------------------------------------------------------


@helping
def queue_whose_timeout_sends(delay: float) -> None:
    def loop() -> None:
        try:
            queue.Queue[int]().get(timeout=delay)
        except queue.Empty:
            dist.send(torch.ones(1), 0)

    run_thread(loop)


class Server:
    """Polls, and answers in one of its methods."""

    def __init__(self, delay: float) -> None:
        self.ends = time.monotonic() + delay
        run_thread(self.loop)

    def loop(self) -> None:
        while time.monotonic() < self.ends:
            time.sleep(0.05)
        self.answer()

    def answer(self) -> None:
        dist.send(torch.ones(1), 0)


@helping
def server_that_answers(delay: float) -> None:
    Server(delay)


@helping
def callback_that_sends(delay: float) -> None:
    callbacks = {"end": lambda: dist.send(torch.ones(1), 0)}

    def loop() -> None:
        threading.Event().wait(delay)
        callbacks["end"]()

    run_thread(loop)


@helping
def thread_that_wakes_another(delay: float) -> None:
    woken = threading.Event()

    def send() -> None:
        woken.wait()
        dist.send(torch.ones(1), 0)

    def poll() -> None:
        time.sleep(delay)
        woken.set()

    run_thread(send)
    run_thread(poll)


@helping
def function_that_imports_late(delay: float) -> None:
    def loop() -> None:
        time.sleep(delay)
        from torch.distributed import send

        send(torch.ones(1), 0)

    run_thread(loop)


@helping
def timer_with_a_function(delay: float) -> None:
    timer = threading.Timer(delay, dist.send, (torch.ones(1), 0))
    timer.daemon = True
    timer.start()


@helping
def generator_that_sends(delay: float) -> None:
    def steps() -> Any:
        yield
        dist.send(torch.ones(1), 0)
        yield

    running = steps()
    next(running)

    def loop() -> None:
        time.sleep(delay)
        next(running)

    run_thread(loop)


@helping
def text_that_is_executed(delay: float) -> None:
    def loop() -> None:
        time.sleep(delay)
        exec("import torch, torch.distributed as dist; dist.send(torch.ones(1), 0)")

    run_thread(loop)


@helping
def group_in_an_object(delay: float) -> None:
    holder = {"group": dist.group.WORLD}

    def loop() -> None:
        time.sleep(delay)
        group: Any = holder["group"]
        group.send([torch.ones(1)], 0, 0).wait()

    run_thread(loop)
