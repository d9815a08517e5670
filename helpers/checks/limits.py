"""Recognize a run ended by a limit on memory, processes, files, disk, output or processor time.

`failed_runs` gives such a run its outcome and advice. `match_mistakes` does not compare it with known
mistakes, because all programs that exceed the same limit end in the same way.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from helpers.check_result import Outcome
from helpers.ranks.failures import RankDied, RankFailed
from helpers.ranks.run import RankFailure
from helpers.ranks.world import FLOOD_ERROR


@dataclass(frozen=True)
class Limit:
    """One limit. advice: where the answer's author should look."""

    name: str
    outcome: Outcome
    advice: str


MEMORY = Limit(
    "memory",
    Outcome.TOO_MUCH_MEMORY,
    "It ran out of memory. Look for a tensor that is too large, or for a list that grows in a loop.",
)
PROCESSES = Limit(
    "processes",
    Outcome.TOO_MANY_PROCESSES,
    "It starts too many processes or threads. Look for the loop that starts them.",
)
FILES = Limit(
    "files",
    Outcome.TOO_MANY_FILES,
    "It has too many files or sockets. Look for a loop that opens them, and close each after use.",
)
_DISK = Limit(
    "disk",
    Outcome.DISK_FULL,
    "It writes more data than fits on the disk. Look for a loop that writes to a file.",
)
_OUTPUT = Limit(
    "output", Outcome.FLOODED, "It printed too much. Is there an endless loop that prints?"
)
_PROCESSOR = Limit(
    "processor time",
    Outcome.TIMED_OUT,
    "It used up its processor time. Is there a loop that never ends?",
)
LIMITS = (MEMORY, PROCESSES, FILES, _DISK, _OUTPUT, _PROCESSOR)
# Outcomes that name the exceeded limit, without a hint at the right answer.
RESOURCE_OUTCOMES = frozenset(limit.outcome for limit in LIMITS if limit is not _PROCESSOR)
# The start of an error's text, including its type, if a rank has exceeded a limit.
_ERROR_PATTERNS = (
    (MEMORY, r"MemoryError|.*(?:can't allocate memory|std::bad_alloc|Cannot allocate memory)"),
    (_DISK, r"OSError: \[Errno (?:27|28|122)\]|.*(?:No space left on device|File too large)"),
    (FILES, r"OSError: \[Errno 2[34]\]|.*Too many open files"),
    (PROCESSES, r"RuntimeError: can't start new thread"),
)
# fork() reports only a temporarily unavailable resource, and so does a nonblocking read.
_UNAVAILABLE_PATTERN = re.compile(r"BlockingIOError: \[Errno 11\]")
_STARTING_PATTERN = re.compile(r"fork|Process|Popen|spawn|\.start\(|subprocess")
# The kernel's signals at a limit of one process.
_SIGNALS = {"SIGXCPU": _PROCESSOR, "SIGXFSZ": _DISK}


def exceeded_limit(failure: RankFailure | None) -> Limit | None:
    """Return the limit that ended a run, or None if there is no sign of a limit."""
    if isinstance(failure, RankDied):
        return _SIGNALS.get(failure.signal)
    if not isinstance(failure, RankFailed):
        return None
    error = failure.error
    if error.kind == FLOOD_ERROR:
        return _OUTPUT
    text = f"{error.kind}: {error.message}"
    places = [*error.frames, *([error.inside] if error.inside else [])]
    if _UNAVAILABLE_PATTERN.match(text) and any(
        _STARTING_PATTERN.search(f"{place.source} {place.function}") for place in places
    ):
        return PROCESSES
    found = next((x for x, pattern in _ERROR_PATTERNS if re.match(pattern, text, re.S)), None)
    # in the course's code, the same error may be about a limit shared by all programs of a user
    return found if found is MEMORY or error.frames else None


def is_ended_by_limit(failure: RankFailure | None) -> bool:
    """Return whether a limit ended a run, or might have ended it by killing a rank."""
    killed = isinstance(failure, RankDied) and failure.signal == "SIGKILL"
    return killed or exceeded_limit(failure) is not None


def advice_on(outcome: Outcome) -> str:
    """Return the advice of the limit with this outcome, or "" if there is no such limit."""
    return next((limit.advice for limit in LIMITS if limit.outcome is outcome), "")
