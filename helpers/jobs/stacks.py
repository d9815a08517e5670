"""Read a worker's position from the text that Python's faulthandler wrote when a signal killed the worker.

Workers start with PYTHONFAULTHANDLER=1, so their code does not need to change. When a job times out, each
running worker receives SIGABRT and writes the stack of each thread to its error output.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from helpers.ranks.cells import is_learner_file

FAULTHANDLER = {"PYTHONFAULTHANDLER": "1"}
# Number of bytes to read from the end of a worker's error output, which may be long.
MAX_DUMP_BYTES = 64 << 10
_MAX_FRAMES = 200
_MAX_NAME = 80
_DUMP_PATTERN = re.compile(
    r"^Fatal Python error: (?:Aborted|Segmentation fault|Bus error|Floating point exception|"
    r"Illegal instruction)$.*?(?:^Extension modules: .*?(?:\n|\Z)|\Z)",
    re.MULTILINE | re.DOTALL,
)
_THREAD_PATTERN = re.compile(r"^(?:Current thread|Thread) 0x\w+ .*$", re.MULTILINE)
_FRAME_PATTERN = re.compile(r'^  File "(.+)", line (\d+) in (.+)$', re.MULTILINE)
_WRAPPERS = frozenset({"wrapper", "inner", "_fn", "__call__"})


@dataclass(frozen=True)
class _Frame:
    file: str
    line: int
    function: str


def without_dump(errors: str) -> str:
    """Return a worker's error output without faulthandler's text, as if it had not been enabled."""
    return (
        _DUMP_PATTERN.sub("", errors).rstrip("\n") + "\n"
        if _DUMP_PATTERN.search(errors)
        else errors
    )


def has_dump(errors: str) -> bool:
    """Return whether faulthandler has written the main thread's stack, which is the last one."""
    found = list(_DUMP_PATTERN.finditer(errors))
    return bool(found) and "Extension modules:" in found[-1][0]


def describe_place(errors: str) -> str:
    """Return the main thread's position: "in all_reduce at train.py, line 7"; "" if it is unknown."""
    dumps = _DUMP_PATTERN.findall(errors)
    if not dumps:
        return ""
    main_thread = _THREAD_PATTERN.split(dumps[-1])[-1]
    frames = [
        _Frame(file, int(line[:9]), function[:_MAX_NAME])
        for file, line, function in _FRAME_PATTERN.findall(main_thread)[:_MAX_FRAMES]
    ]
    for index, frame in enumerate(frames):
        if is_learner_file(frame.file) and not frame.file.startswith("<frozen"):
            called = [
                inner.function
                for inner in reversed(frames[:index])
                if "/torch/" in inner.file and inner.function not in _WRAPPERS
            ]
            inside = f"in {called[0]}" if called else "in its own code"
            return f"{inside} at {Path(frame.file).name[:_MAX_NAME]}, line {frame.line}"
    return ""


def read_end(path: Path) -> str:
    """Return the end of a worker's error output; "" if there is none."""
    try:
        with path.open("rb") as file:
            file.seek(max(0, path.stat().st_size - MAX_DUMP_BYTES))
            return file.read(MAX_DUMP_BYTES).decode(errors="replace")
    except OSError:
        return ""
