"""Read stacks stored next to dumps, from `py-spy dump`, faulthandler, or torch's debug server."""

from __future__ import annotations

import re
from collections.abc import Sequence

from helpers.dumps.frames import Frame

_SECTION_PATTERN = re.compile(r"^=== Rank (\d{1,7}):.*===$", re.MULTILINE)
_THREAD_PATTERN = re.compile(r"^(?:Current thread|Thread) .*$", re.MULTILINE)
_PYSPY_PATTERN = re.compile(r"^ {4}(\S[^\n(]*?) \(([^\n()]+):(\d{1,9})\)$", re.MULTILINE)
_FAULTHANDLER_PATTERN = re.compile(
    r'^ *File "([^"\n]+)", line (\d{1,9}) in ([^\n]+)$', re.MULTILINE
)
_MAX_FRAMES = 200

Stack = Sequence[Frame]
"""The frames of a rank's main thread, innermost first."""


def read_stacks(text: str, rank: int | None) -> dict[int, Stack]:
    """Return the main thread's stack of each rank in a file.

    rank: the rank in the file's name. Files of the debug server contain the ranks' numbers.
    """
    parts = _SECTION_PATTERN.split(text)
    if len(parts) > 1:
        sections = {
            int(number): part for number, part in zip(parts[1::2], parts[2::2], strict=True)
        }
    else:
        sections = {} if rank is None else {rank: text}
    stacks = {number: _main_thread(part) for number, part in sections.items()}
    return {number: stack for number, stack in stacks.items() if stack}


def _main_thread(text: str) -> Stack:
    """Return the frames of the main thread, which py-spy labels and faulthandler writes last."""
    heads = list(_THREAD_PATTERN.finditer(text))
    threads = []
    for number, head in enumerate(heads):
        end = heads[number + 1].start() if number + 1 < len(heads) else len(text)
        threads.append((head[0], _read_frames(text[head.end() : end])))
    threads = [(head, frames) for head, frames in threads if frames] or [("", _read_frames(text))]
    named = [frames for head, frames in threads if "MainThread" in head]
    return named[0] if named else threads[-1][1]


def _read_frames(text: str) -> Stack:
    if frames := _FAULTHANDLER_PATTERN.findall(text)[:_MAX_FRAMES]:
        return [Frame(name, file, int(line)) for file, line, name in frames]
    return [
        Frame(name, file, int(line))
        for name, file, line in _PYSPY_PATTERN.findall(text)[:_MAX_FRAMES]
    ]
