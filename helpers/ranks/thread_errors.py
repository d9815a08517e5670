"""Remember the exceptions that ended a learner's threads, because Python only prints them.

As a consequence, the main program often fails later with an error that reports a different cause, or returns
a wrong value. `worker` calls this in a rank.
"""

from __future__ import annotations

import threading
from dataclasses import replace
from typing import Any

from helpers.ranks.tracebacks import ErrorReport, describe_error

MAX_THREAD_ERRORS = 3
_errors: list[ErrorReport] = []


def remember_thread_errors() -> None:
    """Remember the first exceptions that end a thread of this process from now on, and print all of them."""
    original = threading.excepthook

    def hook(args: Any) -> None:
        if args.exc_value is not None and not issubclass(args.exc_type, SystemExit):
            _errors.append(describe_error(args.exc_value))
            del _errors[MAX_THREAD_ERRORS:]
        original(args)

    # `status` checks whether a learner's code has replaced the hook, so make this one the original hook.
    threading.excepthook = threading.__excepthook__ = hook


def take_thread_errors() -> list[ErrorReport]:
    """Return the remembered exceptions and forget them."""
    taken = _errors[:]
    _errors.clear()
    return taken


def add_thread_error(report: ErrorReport, thread_errors: list[ErrorReport]) -> ErrorReport:
    """Return the main program's report, extended by a thread's exception if there was one.

    The combined report has the same order as Python's output: first the thread's lines, then the main
    program's error as the consequence.
    """
    if not thread_errors or thread_errors[0].when_ns > report.when_ns:
        return report
    first = thread_errors[0]
    message = f"{first.message}\n(in a thread; then the main program raised {report.kind}: {report.message})"
    return replace(first, message=message)
