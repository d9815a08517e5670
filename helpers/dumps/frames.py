"""Find the user's line in a stack, and the function of torch called by it."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath

from helpers.trace.events import Place
from helpers.trace.frames import MAX_CALLERS

_TORCH_PATTERN = re.compile(r"(?:^|/)torch/")
_LIBRARY_PATTERN = re.compile(r"/(?:site|dist)-packages/|/lib/python3[.\d]*/|^<frozen ")
_WRAPPERS = frozenset({"wrapper", "inner", "_fn", "__call__", "decorate_context"})
_HELPER_FILES = ("typing_extensions.py", "contextlib.py", "threading.py")
_BASE_FILES = ("distributed/distributed_c10d.py", "distributed/c10d_logger.py")


@dataclass(frozen=True, slots=True)
class Frame:
    """A frame of a stack, as described by a dump."""

    function: str
    file: str
    line: int

    @property
    def in_torch(self) -> bool:
        return _TORCH_PATTERN.search(self.file) is not None or self.file.endswith(_HELPER_FILES)

    @property
    def in_library(self) -> bool:
        return self.in_torch or _LIBRARY_PATTERN.search(self.file) is not None

    @property
    def torch_file(self) -> str:
        """The file's path relative to torch's folder."""
        return _TORCH_PATTERN.split(self.file)[-1]

    @property
    def place(self) -> Place:
        return Place(self.file, self.line, self.function, PurePosixPath(self.file).name)

    @property
    def in_python(self) -> bool:
        """Whether this is a Python frame. (TORCH_FR_CPP_STACK adds frames of C++.)"""
        return self.line > 0 and (self.file.endswith(".py") or self.file.startswith("<"))


@dataclass(frozen=True, slots=True)
class CallSite:
    """The user's line, the function of torch called by it, and the file of torch that made the call.

    callers: the user's lines that led to it, the nearest first.
    """

    place: Place | None = None
    call: str = ""
    by: str = ""
    callers: tuple[Place, ...] = ()


def find_call_site(frames: Sequence[Frame]) -> CallSite:
    """Return the place of a call. frames: innermost first.

    The user's line is the first frame outside all installed packages or, if there is none, the first frame
    outside torch.
    """
    frames = [frame for frame in frames if frame.in_python]
    mine = next((i for i, frame in enumerate(frames) if not frame.in_library), None)
    outside = next((i for i, frame in enumerate(frames) if not frame.in_torch), None)
    user = outside if mine is None else mine
    inner = frames[: len(frames) if outside is None else outside]
    torch_frames = [f for f in inner if f.function not in _WRAPPERS and f.in_torch]
    base = [f for f in torch_frames if f.torch_file in _BASE_FILES]
    others = [f for f in torch_frames if f not in base and not f.file.endswith(_HELPER_FILES)]
    place = None if user is None else frames[user].place
    outer = []
    if mine is not None and frames[mine].function != "<module>":
        for frame in frames[mine + 1 :]:
            if not frame.in_library:
                outer.append(frame)
            if frame.function == "<module>":
                break  # the frames that run the script are not the user's
    return CallSite(
        place,
        base[-1].function if base else "",
        others[0].torch_file if others else "",
        tuple(frame.place for frame in outer[:MAX_CALLERS]),
    )


def find_function(frames: Sequence[Frame]) -> str:
    """Return the function of torch called by the user's line; "" if the stack ends in the user's code."""
    called = ""
    for frame in frames:
        if not frame.in_torch:
            break
        if frame.in_python and frame.function not in _WRAPPERS:
            called = frame.function
    return called
