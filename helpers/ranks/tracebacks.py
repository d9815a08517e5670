"""A rank's exception as plain data: its kind, its text, and its places.

The class may be the learner's, so any attribute may differ from Python's, and reading it may fail. Even in
this case, the rank reports that it raised an exception.
"""

from __future__ import annotations

import contextlib
import time
import types
from dataclasses import dataclass
from typing import Annotated, Any

from msgspec import Meta

from helpers.ranks.joining import failed_join_call
from helpers.trace.frames import FrameLine, clip_text
from helpers.trace.joins import JoinCall

_MAX_KIND, _MAX_MESSAGE, _MAX_FRAMES = 200, 20_000, 60
_MAX_NOTES = 20
_UNREADABLE = "(its message could not be read)"


@dataclass(frozen=True)
class ErrorReport:
    """A rank's report of an exception.

    Attributes:
        frames: The stack at the place where it was raised, innermost frame last.
        when_ns: The time of the exception, for ordering failures.
        missing: The unknown name in a NameError.
        joins: The call of init_process_group that raised the exception, if any.
    """

    kind: Annotated[str, Meta(max_length=_MAX_KIND)]
    message: Annotated[str, Meta(max_length=_MAX_MESSAGE)]
    frames: Annotated[list[FrameLine], Meta(max_length=_MAX_FRAMES)]
    when_ns: int
    missing: Annotated[str, Meta(max_length=_MAX_KIND)] = ""
    joins: JoinCall | None = None


def describe_error(error: BaseException) -> ErrorReport:
    """Return an exception as plain data."""
    try:
        frames, text, missing = _frames_of(error), _text_of(error), _missing_name(error)
    except BaseException:  # An attribute's code may raise any exception.
        frames, text, missing = [], _UNREADABLE, ""
    joins: JoinCall | None = None
    with contextlib.suppress(Exception):
        joins = failed_join_call(_plain_attribute(error, "__traceback__"))
    return ErrorReport(_kind_of(error), text, frames, time.monotonic_ns(), missing, joins)


def _kind_of(error: BaseException) -> str:
    # For type(error).__name__, a metaclass may return a different value, or raise an exception.
    return clip_text(vars(type)["__name__"].__get__(type(error)), _MAX_KIND)


def _frames_of(error: BaseException) -> list[FrameLine]:
    frames: list[FrameLine] = []
    trace: types.TracebackType | None = _plain_attribute(error, "__traceback__")
    while trace is not None:
        code = trace.tb_frame.f_code
        frames.append((clip_text(code.co_filename), trace.tb_lineno or 0, code.co_name))
        trace = trace.tb_next
    if issubclass(type(error), SyntaxError):  # isinstance would run the object's code.
        file, line = (vars(SyntaxError)[name].__get__(error) for name in ("filename", "lineno"))
        if type(file) is str and file:
            frames.append((clip_text(file), line if type(line) is int else 0, "<module>"))
    return frames[-_MAX_FRAMES:]


def _missing_name(error: BaseException) -> str:
    if type(error) is not NameError:  # In an UnboundLocalError, the name exists in the function.
        return ""
    name = vars(NameError)["name"].__get__(error)
    return clip_text(name, _MAX_KIND) if type(name) is str else ""


def _text_of(error: BaseException) -> str:
    parts = [_message_of(error)]
    notes = _plain_attribute(error, "__dict__").get(
        "__notes__"
    )  # The learner's code may have set it.
    if type(notes) in {list, tuple}:
        parts += [f"\n{_safe_str(note)}" for note in notes[:_MAX_NOTES]]
    if (cause := _plain_attribute(error, "__cause__")) is not None:
        parts.append(f"\n(raised because of {_kind_of(cause)}: {_message_of(cause)})")
    return "".join(parts)[:_MAX_MESSAGE]


def _plain_attribute(error: BaseException, name: str) -> Any:
    """Return Python's built-in attribute of an exception, even if its class redefines that name."""
    return vars(BaseException)[name].__get__(error)


def _message_of(error: BaseException) -> str:
    if _kind_of(error) == "CheckpointException":
        with contextlib.suppress(Exception):
            return _checkpoint_message(error)
    return _safe_str(error)


def _safe_str(value: object) -> str:
    """Return the text of an object, even if its `__str__` returns an odd kind of str."""
    try:
        return clip_text(str(value), _MAX_MESSAGE)
    except BaseException:  # including SystemExit
        return _UNREADABLE


def _checkpoint_message(error: Any) -> str:
    """Return a short message for torch's CheckpointException, whose own text is one traceback per rank."""
    ranks: dict[str, list[str]] = {}
    for rank, (cause, _) in error.failures.items():
        ranks.setdefault(f"{_kind_of(cause)}: {_message_of(cause)}", []).append(str(rank))
    return "; ".join(
        f"on rank {', '.join(rank_numbers)}: {text}" for text, rank_numbers in ranks.items()
    )
