"""Stop, or Ctrl-C: pressed once it interrupts, pressed again it does not interrupt the clearing up."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def one_stop() -> Iterator[None]:
    """Let the first Stop (or Ctrl-C) raise KeyboardInterrupt and ignore all that follow it.

    Who presses Stop again and again must not interrupt the ending of the ranks.
    """
    pressed = False

    def once(number: int, frame: object) -> None:
        nonlocal pressed
        if not pressed:
            pressed = True
            raise KeyboardInterrupt

    try:
        previous = signal.signal(signal.SIGINT, once)
    except ValueError:  # not in the main thread: no KeyboardInterrupt comes here
        yield
        return
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, previous)
