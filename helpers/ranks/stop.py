"""Handle Stop (or Ctrl-C): the first press interrupts, and further presses do not interrupt the cleanup.

The system interrupts only the main thread. In a kernel each press is also counted (`count_stops`), and a
launch in another thread checks the count while it waits (`raise_if_stopped`).
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any


@dataclass
class _Presses:
    """How often Stop was pressed in this process."""

    count: int = 0


@dataclass(frozen=True)
class _Counting:
    """A handler of SIGINT that counts a press, and then calls the previous handler."""

    before: Any

    def __call__(self, number: int, frame: Any) -> None:
        _presses.count += 1
        if callable(self.before):
            self.before(number, frame)


class _Thread(threading.local):
    """What a thread knows of presses.

    seen: the number of presses when its launch began; None outside a launch, or when that launch was
    stopped.
    """

    seen: int | None = None


_presses, _thread = _Presses(), _Thread()


def count_stops(kernel: Any) -> None:
    """Count presses of Stop in a kernel's main thread, during this cell and after it.

    Must be called in each cell, because ipykernel sets its own handler before a cell and another one after.
    """
    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGINT, _counting(signal.getsignal(signal.SIGINT)))
        kernel.saved_sigint_handler = _counting(getattr(kernel, "saved_sigint_handler", None))


def let_threads_stop_quietly() -> None:
    """Print no traceback when a Stop ends a thread, because the stopped cell already reports it."""
    plain = threading.excepthook

    def hook(args: Any) -> None:
        if not issubclass(args.exc_type, KeyboardInterrupt):
            plain(args)

    threading.excepthook = hook


def _counting(before: Any) -> _Counting:
    return before if isinstance(before, _Counting) else _Counting(before)


def raise_if_stopped() -> None:
    """Raise KeyboardInterrupt in a thread, once, if Stop was pressed since its `one_stop` began."""
    if _thread.seen is not None and _thread.seen != _presses.count:
        _thread.seen = None  # Further presses must not interrupt the cleanup.
        raise KeyboardInterrupt


@contextmanager
def one_stop() -> Iterator[None]:
    """Raise KeyboardInterrupt at the first Stop (or Ctrl-C) in the block, and ignore the following ones.

    Pressing Stop repeatedly must not interrupt the ending of the ranks.
    """
    if threading.current_thread() is not threading.main_thread():
        outer = _thread.seen
        _thread.seen = _presses.count if outer is None else outer
        try:
            yield
        finally:
            _thread.seen = outer if _thread.seen is not None else None
        return
    pressed = False

    def once(number: int, frame: object) -> None:
        nonlocal pressed
        _presses.count += 1
        if not pressed:
            pressed = True
            raise KeyboardInterrupt

    previous = signal.signal(signal.SIGINT, once)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, previous)
