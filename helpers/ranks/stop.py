"""Handle Stop (or Ctrl-C) so that the first press interrupts, but later presses do not interrupt the cleanup.

The system interrupts only the main thread. In a kernel each press is also counted (`count_stops`), and a
launch in another thread checks the count while waiting (`raise_if_stopped`).
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any


@dataclass
class _StopCount:
    """The number of presses of Stop in this process."""

    count: int = 0


@dataclass(frozen=True)
class _CountingHandler:
    """A handler of SIGINT that counts the press, then calls the previous handler."""

    previous: Any

    def __call__(self, signum: int, frame: Any) -> None:
        _stop_count.count += 1
        if callable(self.previous):
            self.previous(signum, frame)


class _ThreadState(threading.local):
    """A thread's record of presses.

    count_at_start: the number of presses at the beginning of its launch; None outside a launch, and once the
    launch was stopped.
    """

    count_at_start: int | None = None


_stop_count, _thread_state = _StopCount(), _ThreadState()


def count_stops(kernel: Any) -> None:
    """Count presses of Stop in a kernel's main thread, during this cell and after it.

    Must be called in each cell, because ipykernel sets one handler before a cell and another handler after
    it.
    """
    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGINT, _counting_handler(signal.getsignal(signal.SIGINT)))
        kernel.saved_sigint_handler = _counting_handler(
            getattr(kernel, "saved_sigint_handler", None)
        )


def silence_stopped_threads() -> None:
    """Print no traceback when a Stop ends a thread, because the stopped cell already reports it."""
    original = threading.excepthook

    def hook(args: Any) -> None:
        if not issubclass(args.exc_type, KeyboardInterrupt):
            original(args)

    threading.excepthook = hook


def _counting_handler(handler: Any) -> _CountingHandler:
    return handler if isinstance(handler, _CountingHandler) else _CountingHandler(handler)


def raise_if_stopped() -> None:
    """Raise KeyboardInterrupt in a thread, once, if Stop was pressed after its `raise_first_stop` began."""
    if (
        _thread_state.count_at_start is not None
        and _thread_state.count_at_start != _stop_count.count
    ):
        _thread_state.count_at_start = None  # Further presses must not interrupt the cleanup.
        raise KeyboardInterrupt


@contextmanager
def raise_first_stop() -> Iterator[None]:
    """Raise KeyboardInterrupt at the first Stop (or Ctrl-C) in the block, and ignore the following ones.

    Pressing Stop repeatedly must not interrupt the termination of the ranks.
    """
    if threading.current_thread() is not threading.main_thread():
        outer_count = _thread_state.count_at_start
        _thread_state.count_at_start = _stop_count.count if outer_count is None else outer_count
        try:
            yield
        finally:
            _thread_state.count_at_start = (
                outer_count if _thread_state.count_at_start is not None else None
            )
        return
    was_pressed = False

    def handle_stop(number: int, frame: object) -> None:
        nonlocal was_pressed
        _stop_count.count += 1
        if not was_pressed:
            was_pressed = True
            raise KeyboardInterrupt

    previous = signal.signal(signal.SIGINT, handle_stop)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, previous)
