"""Which lines on a rank's stack are the learner's, and which function of torch they called."""

from __future__ import annotations

import functools
import os
import sys
from importlib.util import find_spec
from pathlib import Path
from types import CodeType, FrameType

_SPEC = find_spec("torch")  # not imported: the launcher reads this too, before torch is in
_TORCH = str(Path(str(_SPEC and _SPEC.origin)).parent) + os.sep
_HELPERS = str(Path(__file__).parent.parent) + os.sep
_RECORDS = str(Path(__file__).parent) + os.sep
_STDLIB = str(Path(os.__file__).parent) + os.sep
_API_FILES = ("distributed_c10d.py", "_functional_collectives.py", "_ops.py")
_WRAPPERS = frozenset({"wrapper", "call", "wait"})

# A line of code as a rank names it: file, line, function.
At = tuple[str, int, str]
# Kinds of functions: a learner's, one of torch's that learners call to communicate, torch's, others'.
LEARNER, API, TORCH, OTHER = "learner", "api", "torch", "other"


@functools.cache
def kind_of(code: CodeType) -> str:
    """Tell whose a function is."""
    name = code.co_filename
    # By where its file is, not by its module's name, which code can choose.
    ours = (_TORCH, _HELPERS, _STDLIB, "<frozen", "<string>")  # the last is the server's own start
    if not (name.startswith(ours) or "site-packages" in name):
        return LEARNER
    if not name.startswith(_TORCH) or code.co_name in _WRAPPERS:
        return OTHER
    return API if name.endswith(_API_FILES) else TORCH


def file_in_torch(code: CodeType) -> str:
    """Return the file of a function of torch, from torch's folder on: "nn/parallel/distributed.py"."""
    return code.co_filename.removeprefix(_TORCH)


def is_ours(code: CodeType) -> bool:
    """Whether a function belongs to this package: to the code around an exercise's answer, for example."""
    return code.co_filename.startswith(_HELPERS)


def learner_frame(frame: FrameType | None) -> FrameType | None:
    """Return the innermost frame, from this one outwards, that is the learner's own."""
    while frame is not None and kind_of(frame.f_code) is not LEARNER:
        frame = frame.f_back
    return frame


def place(frame: FrameType) -> At:
    """Return a frame's place as a rank reports it."""
    # on the way back to a loop's begin a frame has no line
    line = frame.f_lineno or frame.f_code.co_firstlineno
    return clipped(frame.f_code.co_filename), line, frame.f_code.co_name


def clipped(text: str, most: int = 4096) -> str:
    """Return at most that many characters of a text, as a plain str that JSON can hold."""
    # str's own method: one of a class of its own may do anything when it is cut or joined. A file's name or a
    # message may hold bytes that are not UTF-8, as surrogates, at which a strict decoder would give up.
    return str.encode(str.__getitem__(text, slice(most)), errors="backslashreplace").decode()[:most]


def whereabouts(thread: int | None) -> tuple[At | None, str, FrameType | None]:
    """Tell where a thread of this process is: the learner's line, and the torch function it called.

    The function is "" unless the thread is inside torch at this moment. The innermost frame comes with it.
    """
    # A look from another thread, which may be stale when it is read: a thread that waits stays where it is.
    frame = sys._current_frames().get(thread or 0)
    recorded = ""
    while frame is not None and frame.f_code.co_filename.startswith(_RECORDS):
        recorded = frame.f_code.co_name  # in the end: the method of torch that we replace
        frame = frame.f_back
    innermost = frame
    while frame is not None and is_ours(frame.f_code):  # a check's wrapper of a call of torch's
        frame = frame.f_back
    learner = learner_frame(frame)
    called = recorded if frame is learner and recorded in _WRAPPERS else ""
    if frame is not None and frame.f_code.co_filename.startswith(_TORCH):
        while frame is not None and frame is not learner:
            if frame.f_code.co_name not in _WRAPPERS:
                called = frame.f_code.co_name
            frame = frame.f_back
    return (place(learner) if learner else None), called, innermost
