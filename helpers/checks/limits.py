"""Recognize a run that a limit has ended: of memory, processes, files, disk, output or processor time.

`failed_runs` gives such a run its outcome and advice. `match_mistakes` compares it with no known mistake,
because any program that runs into the same limit ends in the same way.
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
    """One limit. advice: where its author should look."""

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
    "It writes more to the disk than there is room for. Look for a loop that writes to a file.",
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
# Outcomes that say which limit was exceeded, and nothing about the way to the answer.
RESOURCE_OUTCOMES = frozenset(limit.outcome for limit in LIMITS if limit is not _PROCESSOR)
# How an exceeded limit appears in a rank: the start of the error's text, its kind included.
_ERROR_PATTERNS = (
    (MEMORY, r"MemoryError|.*(?:can't allocate memory|std::bad_alloc|Cannot allocate memory)"),
    (_DISK, r"OSError: \[Errno (?:27|28|122)\]|.*(?:No space left on device|File too large)"),
    (FILES, r"OSError: \[Errno 2[34]\]|.*Too many open files"),
    (PROCESSES, r"RuntimeError: can't start new thread"),
)
# fork() says only that a resource is unavailable for now, and a read that does not wait says the same.
_UNAVAILABLE_PATTERN = re.compile(r"BlockingIOError: \[Errno 11\]")
_STARTING_PATTERN = re.compile(r"fork|Process|Popen|spawn|\.start\(|subprocess")
# The kernel's signals at a limit of one process.
_SIGNALS = {"SIGXCPU": _PROCESSOR, "SIGXFSZ": _DISK}


def exceeded_limit(failure: RankFailure | None) -> Limit | None:
    """Return the limit that ended a run, or None if nothing shows that one did."""
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
    # in the course's own code, the same error may be about what all programs of a user share
    return found if found is MEMORY or error.frames else None


def is_ended_by_limit(failure: RankFailure | None) -> bool:
    """Return whether a limit ended a run, or may have: a rank that was killed cannot say why."""
    killed = isinstance(failure, RankDied) and failure.signal == "SIGKILL"
    return killed or exceeded_limit(failure) is not None


def advice_on(outcome: Outcome) -> str:
    """Return where to look after a limit with this outcome, or "" if there is no such limit."""
    return next((limit.advice for limit in LIMITS if limit.outcome is outcome), "")
