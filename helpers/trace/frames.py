"""Find the learner's lines on a rank's stack, and the function of torch called by these lines."""

from __future__ import annotations

import functools
import os
import sys
import threading
from importlib.util import find_spec
from pathlib import Path
from types import CodeType, FrameType

# Find torch without importing it, because the launcher imports this module before torch.
_TORCH_SPEC = find_spec("torch")
_TORCH_FOLDER = str(Path(str(_TORCH_SPEC and _TORCH_SPEC.origin)).parent) + os.sep
_COURSE_FOLDER = str(Path(__file__).parent.parent) + os.sep
_TRACE_FOLDER = str(Path(__file__).parent) + os.sep
_STDLIB_FOLDER = str(Path(os.__file__).parent) + os.sep
_API_FILES = ("distributed_c10d.py", "_functional_collectives.py", "_ops.py")
_WRAPPER_NAMES = frozenset({"wrapper", "call", "wait"})

# A rank's report of a line of code: file, line, function.
FrameLine = tuple[str, int, str]
# Maximum number of recorded callers of a call, and of frames to search for them.
MAX_CALLERS, _MAX_WALKED = 4, 50
# Kinds of functions: a learner's; torch's API for communication; the rest of torch; any other function.
LEARNER, API, TORCH, OTHER = "learner", "api", "torch", "other"


@functools.cache
def code_kind(code: CodeType) -> str:
    """Return the kind of a function with this code."""
    name = code.co_filename
    # Use the file instead of the module's name, because code can choose its module's name.
    engine_prefixes = (
        _TORCH_FOLDER,
        _COURSE_FOLDER,
        _STDLIB_FOLDER,
        "<frozen",
        "<string>",
    )  # "<string>": the server's program
    if not (name.startswith(engine_prefixes) or "site-packages" in name):
        return LEARNER
    if not name.startswith(_TORCH_FOLDER) or code.co_name in _WRAPPER_NAMES:
        return OTHER
    return API if name.endswith(_API_FILES) else TORCH


def file_in_torch(code: CodeType) -> str:
    """Return the file of a function of torch, relative to torch's folder: "nn/parallel/distributed.py"."""
    return code.co_filename.removeprefix(_TORCH_FOLDER)


def is_course_code(code: CodeType) -> bool:
    """Return whether a function belongs to this package, such as the code around an exercise's answer."""
    return code.co_filename.startswith(_COURSE_FOLDER)


def learner_frame(frame: FrameType | None) -> FrameType | None:
    """Return the innermost frame of the learner's code, searching from this frame outwards."""
    while frame is not None and code_kind(frame.f_code) is not LEARNER:
        frame = frame.f_back
    return frame


def learner_callers(frame: FrameType | None) -> tuple[FrameType, ...]:
    """Return the learner's frames outside this frame, the nearest first, up to a limit.

    The search ends at the course's frame that called the learner's function: frames further out only start
    the rank.
    """
    callers: list[FrameType] = []
    frame = frame and frame.f_back
    for _ in range(_MAX_WALKED):
        if frame is None or len(callers) == MAX_CALLERS or is_course_code(frame.f_code):
            break
        if code_kind(frame.f_code) is LEARNER:
            callers.append(frame)
        frame = frame.f_back
    return tuple(callers)


def frame_line(frame: FrameType) -> FrameLine:
    """Return a frame's place, in the form used in a rank's reports."""
    # While jumping back to a loop's start, a frame has no line.
    line = frame.f_lineno or frame.f_code.co_firstlineno
    return clip_text(frame.f_code.co_filename), line, frame.f_code.co_name


def clip_text(text: str, max_length: int = 4096) -> str:
    """Return at most `max_length` characters of `text`, as a plain str that is valid in JSON."""
    # Call the methods of str itself, because a subclass's methods may do anything. File names and messages
    # may contain bytes that are not UTF-8. Python represents them as surrogates, which a strict decoder
    # rejects.
    return str.encode(str.__getitem__(text, slice(max_length)), errors="backslashreplace").decode()[
        :max_length
    ]


def _function_name(code: CodeType) -> str:
    """Return the name of a function; for a constructor, the name of its class."""
    if code.co_name != "__init__":
        return code.co_name
    return getattr(code, "co_qualname", "__init__").removesuffix(".__init__").rpartition(".")[2]


def frames_of_other_threads() -> dict[int, FrameType]:
    """Return the innermost frame of each thread, except the calling thread.

    The caller's frame would be part of a cycle, which would keep the other frames and all their objects
    alive until the next garbage collection.
    """
    frames = sys._current_frames()
    frames.pop(threading.get_ident(), None)
    return frames


def thread_location(thread: int | None) -> tuple[FrameLine | None, str, FrameType | None]:
    """Return a thread's position: the learner's line, the torch function called there, the innermost frame.

    The function is "" unless the thread is inside torch at this moment.
    """
    # Another thread reads this frame, so it may be outdated unless its thread is waiting.
    frame = sys._current_frames().get(thread or 0)
    wrapper_name = ""
    while frame is not None and frame.f_code.co_filename.startswith(_TRACE_FOLDER):
        wrapper_name = (
            frame.f_code.co_name
        )  # The last frame is the method of torch that our wrapper replaces.
        frame = frame.f_back
    innermost = frame
    while frame is not None and is_course_code(
        frame.f_code
    ):  # the wrapper of a check around a call of torch
        frame = frame.f_back
    learner = learner_frame(frame)
    torch_function = wrapper_name if frame is learner and wrapper_name in _WRAPPER_NAMES else ""
    if frame is not None and frame.f_code.co_filename.startswith(_TORCH_FOLDER):
        while frame is not None and frame is not learner:
            if frame.f_code.co_name not in _WRAPPER_NAMES:
                torch_function = _function_name(frame.f_code)
            frame = frame.f_back
    return (frame_line(learner) if learner else None), torch_function, innermost
