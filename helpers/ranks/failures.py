"""One error type for each way in which a launch can fail.

| error        | cause                                            | attributes, in addition to .run    |
|--------------|--------------------------------------------------|------------------------------------|
| RankFailed   | a rank raised an exception, or called sys.exit   | rank, traceback (learner's lines)  |
| RankDied     | a rank's process exited without an exception     | rank, signal name or exit code     |
| Deadlock     | every rank is blocked                            | diagnosis: who waits for whom      |
| HostLost     | a host that ran some of the ranks was lost       | host, ranks, waits of other ranks  |
| RankTimeout  | the launch's budget was used up                  | waits: each rank's activity        |
| CannotSend   | the function or its arguments cannot be pickled  | name of the variable (no run)      |
| LaunchError  | the launch itself was impossible                 | (no run)                           |

The earliest failure is the root cause. Later errors of other ranks ("connection closed by peer") are
consequences and are listed below the root cause.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from helpers.ranks.advice import advice_for
from helpers.ranks.run import PlainError, RankFailure
from helpers.trace.events import Diagnosis, Event, Place, Wait
from helpers.trace.joins import JoinCall
from helpers.trace.mismatch import describe_tensors
from helpers.trace.wording import has_or_have, name_ranks


class LaunchError(PlainError):
    """The launch was not possible: wrong arguments, or no rank could be started."""


class CannotSend(LaunchError):
    """The function or an argument cannot be sent to the ranks. `name` is the name of the variable."""

    def __init__(self, message: str, name: str = "") -> None:
        super().__init__(message)
        self.name = name


class Stopped(KeyboardInterrupt):
    """The reader pressed Stop (or Ctrl-C), and all ranks were terminated."""

    def __init__(self, world_size: int) -> None:
        count = {1: "the rank was", 2: "both ranks were"}
        ranks = count.get(world_size, f"all {world_size} ranks were")
        super().__init__(
            f"you interrupted the cell, and {ranks} terminated. The kernel is ready for the next cell."
        )

    def _render_traceback_(self) -> list[str]:
        return [f"Stopped: {self}"]


@dataclass(frozen=True, slots=True)
class RankError:
    """A rank's report of an exception, containing only text and places instead of the exception object.

    Attributes:
        frames: The learner's lines, outermost first.
        when_ns: The time of the exception, for ordering failures.
        missing: The unknown name in a NameError.
        inside: The line of an installed package that raised the exception, if any.
        joins: The call of init_process_group that raised the exception, if any.
    """

    rank: int
    kind: str
    message: str
    frames: tuple[Place, ...] = ()
    when_ns: int = 0
    missing: str = ""
    inside: Place | None = None
    joins: JoinCall | None = None

    def __str__(self) -> str:
        lines = [f"{self.kind}: {self.message}" if self.message else self.kind]
        for place in (*self.frames, *([self.inside] if self.inside else [])):
            lines.append(f"  {place}, in {place.function}")
            if place.source:
                lines.append(f"    {place.source.strip()}")
        return "\n".join(lines)


# Messages of gloo, the stores and NCCL when the peer's process has exited.
_PEER_DISCONNECTED_PATTERN = re.compile(
    r"connection (closed|reset|was closed|was likely closed)|broken pipe|closed by peer|remote process|"
    r"application timeout caused pair closure|\[[^\]]*gloo/transport",
    re.IGNORECASE,
)


# Messages of gloo that begin in the same way although no peer has exited. They report a wrong name of a
# network interface, and a message that a rank sends to itself.
_NO_PEER_EXITED_PATTERN = re.compile(
    "Unable to find (address|interface) for|Pair is not connected", re.IGNORECASE
)


def is_consequence(error: RankError) -> bool:
    """Return whether an error is only a consequence of a peer's exit."""
    return bool(
        _PEER_DISCONNECTED_PATTERN.search(error.message)
    ) and not _NO_PEER_EXITED_PATTERN.search(error.message)


def _same_error(error: RankError, other_error: RankError) -> bool:
    """Return whether two ranks failed at the same lines, and neither of them because of the other."""
    same_lines = (error.kind, error.frames) == (other_error.kind, other_error.frames)
    return same_lines and is_consequence(error) == is_consequence(other_error)


class RankFailed(RankFailure):
    """A rank raised an exception. `error` (of `rank`) is the root cause; `consequences` are later errors."""

    def __init__(
        self,
        error: RankError,
        consequences: tuple[RankError, ...] = (),
        hosts: Sequence[str] = (),
        explanation: str = "",
    ) -> None:
        """Create the error. explanation: advice, and the cause if the ranks' records show it."""
        text = f"raised {error}"
        alike = [e.rank for e in consequences if _same_error(e, error)]
        if alike:
            text += f"\n  (the same on rank{'s' * (len(alike) > 1)} {', '.join(map(str, sorted(alike)))})"
        others = sorted((e for e in consequences if e.rank not in alike), key=lambda e: e.rank)
        for other in others:
            if not is_consequence(other):
                text += f"\n{name_rank(other.rank, hosts)} raised as well, {other}"
        names = ", ".join(f"rank {e.rank} ({e.kind})" for e in others if is_consequence(e))
        if names:
            text += f"\n  (as a consequence, a connection was lost on {names})"
        line = error.frames[-1].source if error.frames else ""
        if advice := explanation or advice_for(error.kind, error.message, line):
            text += f"\n{advice}"
        super().__init__(f"{name_rank(error.rank, hosts)} {text}")
        self._action = text
        self.rank = error.rank
        self.error = error
        self.consequences = consequences

    def describe(
        self, *, is_alone: bool = False, with_waits: bool = True, with_launch_hint: bool = True
    ) -> str:
        return f"your function {self._action}" if is_alone else str(self)


class RankDied(RankFailure):
    """A rank's process exited without an exception: by `signal` ("SIGSEGV", ... or "") or with `exitcode`."""

    def __init__(
        self, rank: int, signal: str, exitcode: int, advice: str, hosts: Sequence[str] = ()
    ) -> None:
        how = f"was terminated by {signal}" if signal else f"exited with code {exitcode}"
        text = f"{name_rank(rank, hosts)} {how}. {advice}"
        super().__init__(text)
        self.server_exited = False
        """Whether the rank server was killed, and all ranks with it."""
        self.rank = rank
        self.signal = signal
        self.exitcode = exitcode
        self.advice = advice


class HostLost(RankFailure):
    """A host was lost with its ranks. `waits` describes the activity of the ranks on other hosts."""

    def __init__(
        self, host: str, ranks: Sequence[int], why: str, waits: Sequence[Wait], hosts: Sequence[str]
    ) -> None:
        gone = ", ".join(map(str, ranks))
        lines = [f"lost host {host} and its rank{'s' * (len(ranks) > 1)} {gone}: {why}."]
        lines += [f"  {name_rank(wait.rank, hosts)}: {describe_wait(wait)}" for wait in waits]
        super().__init__("\n".join(lines))
        self.host = host
        self.ranks = tuple(ranks)
        self.waits = tuple(waits)


# With up to 8 ranks, each gets a separate line. If there are more, ranks with the same wait share a line.
_MAX_SINGLE_LINES, _MAX_SHARED_LINES = 8, 16


class Deadlock(RankFailure):
    """Every rank is blocked. `diagnosis` describes the ranks' waits, with their calls and lines."""

    def __init__(self, diagnosis: Diagnosis, hosts: Sequence[str] = ()) -> None:
        lines = [diagnosis.summary]
        lines += _wait_lines(diagnosis.waits, hosts, diagnosis.guilty)
        lines.append(diagnosis.advice)
        super().__init__("\n".join(lines))
        self.diagnosis = diagnosis

    def describe(
        self, *, is_alone: bool = False, with_waits: bool = True, with_launch_hint: bool = True
    ) -> str:
        diagnosis = self.diagnosis
        return str(self) if with_waits else f"{diagnosis.summary}\n{diagnosis.advice}"

    @property
    def waits(self) -> tuple[Wait, ...]:
        return self.diagnosis.waits


# The elapsed time is mentioned only if it exceeds the budget by this much, because stored outputs must not
# depend on the machine.
_MIN_EXTRA_S = 10.0
# The beginning of the message of a timeout.
TIMED_OUT_AFTER = "timed out after"


class RankTimeout(RankFailure):
    """The launch's whole budget was used up. `waits` describes each rank's activity at the end.

    Attributes:
        by_the_clock: Whether the machine was so busy that the ranks were terminated before they had used
            their whole budget.
        was_computing: Whether the ranks used a processor for the whole budget, so no other program slowed
            them down.
        elapsed_s: The time by the clock, which on a busy machine is longer than the charged time.
        diagnosis: The reason why more time would not have helped, if known.
        returned: The ranks that had already returned.
    """

    def __init__(
        self,
        timeout_s: float,
        waits: tuple[Wait, ...],
        by_the_clock: bool = False,
        hosts: Sequence[str] = (),
        was_computing: bool = False,
        elapsed_s: float = 0.0,
        diagnosis: Diagnosis | None = None,
        returned: Sequence[int] = (),
    ) -> None:
        reason = describe_timeout(timeout_s, elapsed_s, by_the_clock)
        lines = [f"{reason}; all ranks were terminated."]
        lines += _wait_lines(waits, hosts)
        if diagnosis is not None:
            lines += [diagnosis.summary, diagnosis.advice]
        self._without_hint = "\n".join(lines)
        if diagnosis is None:
            lines.append(f"{_condition_for_more_time(returned)}, pass timeout=SECONDS to launch().")
        super().__init__("\n".join(lines))
        self.timeout_s = timeout_s
        self.waits = waits
        self.by_the_clock = by_the_clock
        self.was_computing = was_computing
        self.elapsed_s = elapsed_s
        self.diagnosis = diagnosis

    def describe(
        self, *, is_alone: bool = False, with_waits: bool = True, with_launch_hint: bool = True
    ) -> str:
        return str(self) if with_launch_hint else self._without_hint


def _condition_for_more_time(returned: Sequence[int]) -> str:
    """Return the condition under which a higher limit helps, because others may need a returned rank."""
    if not returned:
        return "If your program needs more time"
    are_returned = f"{name_ranks(returned)} {has_or_have(returned)} returned".capitalize()
    them = "it" if len(returned) == 1 else "them"
    return f"{are_returned}. If the remaining ranks don't wait for {them} and need more time"


def describe_timeout(budget_s: float, elapsed_s: float, by_the_clock: bool = False) -> str:
    """Describe the time that unfinished work has used: its budget, and the clock time if much longer."""
    if elapsed_s - budget_s < _MIN_EXTRA_S:
        return f"{TIMED_OUT_AFTER} {budget_s:g} s"
    granted = f"less than {budget_s:g} s" if by_the_clock else f"{budget_s:g} s"
    return (
        f"{TIMED_OUT_AFTER} {elapsed_s:.0f} s, of which the busy machine let it run for {granted}"
    )


def _wait_lines(
    waits: Sequence[Wait], hosts: Sequence[str], guilty: Sequence[int] = ()
) -> list[str]:
    """Return one line per rank, guilty ranks first.

    If there are many ranks, ranks with the same wait share a line.
    """
    if hosts or len(waits) <= _MAX_SINGLE_LINES:
        return [
            line
            for wait in waits
            for line in (
                f"  {name_rank(wait.rank, hosts)}: {describe_wait(wait)}",
                *_caller_lines(wait),
            )
        ]
    groups: dict[tuple[bool, str], list[int]] = {}
    for wait in sorted(waits, key=lambda wait: (wait.rank not in guilty, wait.rank)):
        groups.setdefault((wait.rank in guilty, describe_wait(wait)), []).append(wait.rank)
    lines = [f"  {_name_ranks(ranks)}: {action}" for (_, action), ranks in groups.items()]
    omitted = sum(len(ranks) for ranks in list(groups.values())[_MAX_SHARED_LINES:])
    return [
        *lines[:_MAX_SHARED_LINES],
        *([f"  (and {omitted} more: see .waits)"] if omitted else []),
    ]


def _caller_lines(wait: Wait) -> list[str]:
    """Return the lines with the callers of a rank's call, and with the exception that it is handling."""
    callers = describe_callers(wait.event) if wait.event is not None else ""
    handling = f"while handling {' '.join(wait.handling.split())}" if wait.handling else ""
    return [f"    {line}" for line in (callers, handling) if line]


def describe_callers(event: Event) -> str:
    """Describe a call's callers: "called from train.py, line 81 in train, line 97 in main", or ""."""
    callers = event.callers
    if len(callers) > 1 and callers[-1].function == "<module>":
        callers = callers[:-1]  # The outermost line only starts the program.
    texts, file = [], event.where and event.where.file
    for place in callers:
        line = f"line {place.line}" if place.file == file else str(place)
        texts.append(f"{line} in {place.function}" if place.function != "<module>" else line)
        file = place.file
    return f"called from {', '.join(texts)}" if texts else ""


def _name_ranks(ranks: Sequence[int]) -> str:
    """Name ranks in ascending order: "rank 3", "ranks 0, 2 to 63"."""
    spans: list[list[int]] = []
    for rank in ranks:
        if spans and rank == spans[-1][1] + 1:
            spans[-1][1] = rank
        else:
            spans.append([rank, rank])
    texts = [str(first) if first == last else f"{first} to {last}" for first, last in spans]
    return f"rank{'s' * (len(ranks) > 1)} {', '.join(texts)}"


def name_rank(rank: int, hosts: Sequence[str]) -> str:
    """Name a rank, and its host if there are several. hosts: the host of each rank, or empty."""
    return f"rank {rank} on {hosts[rank]}" if hosts else f"rank {rank}"


def describe_wait(wait: Wait) -> str:
    """Describe a rank's wait in one line: its call, the peer, the line, and the ranks it waits for."""
    event = wait.event
    if event is None:
        return wait.state
    parts = [describe_call(event)]
    if event.where:
        parts.append(f" at {event.where}")
    if wait.waits_for:
        peers = ", ".join(str(rank) for rank in wait.waits_for)
        parts.append(f": waits for rank{'s' if len(wait.waits_for) > 1 else ''} {peers}")
    return "".join(parts)


def describe_call(event: Event) -> str:
    """Describe a call in words: `send of 3 float32 to rank 1`, `all_reduce SUM of 3 float32`."""
    tensors = ""
    if event.shapes and event.op != "barrier":
        is_coalesced = event.op in {"all_reduce", "broadcast"}
        shapes = event.shapes if is_coalesced else event.shapes[:1]
        tensors = f" of {describe_tensors(shapes, event.dtype)}"
    if event.op == "send":
        text = f"{event.call}{tensors} to rank {event.peer}"
    elif event.op == "recv":
        sender = "any rank" if event.peer is None else f"rank {event.peer}"
        text = f"{event.call}{tensors} from {sender}"
    else:
        text = event.call
        if event.root is not None:
            text += f" with root {event.root}"
        if event.reduce_op:
            text += f" {event.reduce_op}"
        text += tensors
    if event.op in {"send", "recv"} and event.tag:
        text += f" with tag {event.tag}"
    return text
