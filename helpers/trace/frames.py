"""Find the learner's lines on a rank's stack, and the function of torch that they called."""

from __future__ import annotations

import functools
import os
import sys
from importlib.util import find_spec
from pathlib import Path
from types import CodeType, FrameType

# Find torch without importing it, because the launcher reads this file before it imports torch.
_SPEC = find_spec("torch")
_TORCH = str(Path(str(_SPEC and _SPEC.origin)).parent) + os.sep
_HELPERS = str(Path(__file__).parent.parent) + os.sep
_RECORDS = str(Path(__file__).parent) + os.sep
_STDLIB = str(Path(os.__file__).parent) + os.sep
_API_FILES = ("distributed_c10d.py", "_functional_collectives.py", "_ops.py")
_WRAPPERS = frozenset({"wrapper", "call", "wait"})

# A line of code as a rank reports it: file, line, function.
At = tuple[str, int, str]
# Kinds of functions: a learner's; torch's API for communication; the rest of torch; any other.
LEARNER, API, TORCH, OTHER = "learner", "api", "torch", "other"


@functools.cache
def kind_of(code: CodeType) -> str:
    """Return which kind a function is, by its code."""
    name = code.co_filename
    # Go by the file, not by the module's name, because code can choose that name.
    ours = (_TORCH, _HELPERS, _STDLIB, "<frozen", "<string>")  # "<string>": the server's program
    if not (name.startswith(ours) or "site-packages" in name):
        return LEARNER
    if not name.startswith(_TORCH) or code.co_name in _WRAPPERS:
        return OTHER
    return API if name.endswith(_API_FILES) else TORCH


def file_in_torch(code: CodeType) -> str:
    """Return the file of a function of torch, relative to torch's folder: "nn/parallel/distributed.py"."""
    return code.co_filename.removeprefix(_TORCH)


def is_ours(code: CodeType) -> bool:
    """Return whether a function belongs to this package, such as the code around an exercise's answer."""
    return code.co_filename.startswith(_HELPERS)


def learner_frame(frame: FrameType | None) -> FrameType | None:
    """Return the innermost frame, from this one outwards, that is the learner's own."""
    while frame is not None and kind_of(frame.f_code) is not LEARNER:
        frame = frame.f_back
    return frame


def place(frame: FrameType) -> At:
    """Return a frame's place as a rank reports it."""
    # While it jumps back to a loop's start, a frame has no line.
    line = frame.f_lineno or frame.f_code.co_firstlineno
    return clipped(frame.f_code.co_filename), line, frame.f_code.co_name


def clipped(text: str, most: int = 4096) -> str:
    """Return at most `most` characters of a text, as a plain str that JSON can hold."""
    # Call str's own methods, because those of a subclass may do anything. File names and messages may
    # contain bytes that are not UTF-8. Python represents them as surrogates, which a strict decoder
    # rejects.
    return str.encode(str.__getitem__(text, slice(most)), errors="backslashreplace").decode()[:most]


def whereabouts(thread: int | None) -> tuple[At | None, str, FrameType | None]:
    """Return where a thread of this process is: the learner's line, and the torch function it called.

    The function is "" unless the thread is inside torch at this moment. The innermost frame is returned too.
    """
    # A different thread reads the frame, so it may be outdated unless its thread waits.
    frame = sys._current_frames().get(thread or 0)
    recorded = ""
    while frame is not None and frame.f_code.co_filename.startswith(_RECORDS):
        recorded = frame.f_code.co_name  # In the end this is the method of torch that we replace.
        frame = frame.f_back
    innermost = frame
    while frame is not None and is_ours(frame.f_code):  # a check's wrapper around a call of torch
        frame = frame.f_back
    learner = learner_frame(frame)
    called = recorded if frame is learner and recorded in _WRAPPERS else ""
    if frame is not None and frame.f_code.co_filename.startswith(_TORCH):
        while frame is not None and frame is not learner:
            if frame.f_code.co_name not in _WRAPPERS:
                called = frame.f_code.co_name
            frame = frame.f_back
    return (place(learner) if learner else None), called, innermost
