"""How the ranks must talk: rules on the trace of a run, each one sentence for the learner.

A rule is a small object with `text`, which the learner reads before and after, and `problem`, which
gives "" or what is wrong with this trace. Amounts may be a number, or a function of the case and the
rank. They teach; what a learner's process records about itself is not a proof.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

from helpers.trace.events import Event, Trace
from helpers.views.plain import plural

Case = Any
"""What rules ask of a case: its world_size, and its facts."""
Amount = int | str | Callable[[Case, int], int]
"""A number, the name of a fact of the case, or a function of (case, rank) that gives one."""


class Rule(Protocol):
    """What every rule can do.

    forbids: breaking it makes the outcome "forbidden call". on_each_call: it looks at each call by itself,
    so that it holds, or not, also of a run that ended early.
    """

    @property
    def text(self) -> str: ...

    @property
    def forbids(self) -> bool: ...

    @property
    def on_each_call(self) -> bool: ...

    def problem(self, trace: Trace, case: Case) -> str:
        """Return "" or one sentence that says which rank broke the rule, and how."""
        ...


@dataclass(frozen=True)
class OnlyCalls:
    """Every communication call is one of these ops (`Event.op` in torch's words)."""

    ops: tuple[str, ...]
    forbids: bool = True
    on_each_call: bool = True

    @property
    def text(self) -> str:
        return f"uses only {_and(self.ops)}" if self.ops else "does not communicate"

    def problem(self, trace: Trace, case: Case) -> str:
        for event in trace.calls:
            if event.op not in self.ops:
                allowed = (
                    f"only {_and(self.ops)} may be used here" if self.ops else "none is needed"
                )
                return f"rank {event.rank} calls {event.call}{_at(event)}; {allowed}."
        return ""


@dataclass(frozen=True)
class Count:
    """Each rank makes exactly (or at most) this many calls of an op."""

    op: str
    amount: Amount
    at_most: bool = False
    why: str = ""
    forbids: bool = False
    on_each_call: bool = False

    @property
    def text(self) -> str:
        how = "at most " if self.at_most else ""
        number = str(self.amount) if isinstance(self.amount, int) else "the right number of"
        return f"{how}{number} {self.op} on each rank"

    def problem(self, trace: Trace, case: Case) -> str:
        for rank in range(case.world_size):
            made = sum(event.op == self.op for event in trace.of(rank))
            wanted = amount_of(self.amount, case, rank)
            if made > wanted or (made < wanted and not self.at_most):
                how = "at most " if self.at_most else ""
                return (
                    f"rank {rank} calls {self.op} {_times(made)}; "
                    f"{how}{_times(wanted)} is right.{_why(self.why)}"
                )
        return ""


@dataclass(frozen=True)
class TotalMessages:
    """All ranks together send exactly (or at most) this many messages."""

    amount: Callable[[Case], int]
    at_most: bool = False
    why: str = ""
    forbids: bool = False
    on_each_call: bool = False

    @property
    def text(self) -> str:
        return "no more messages than needed" if self.at_most else "the right number of messages"

    def problem(self, trace: Trace, case: Case) -> str:
        sent = sum(event.op == "send" for event in trace)
        wanted = self.amount(case)
        if sent > wanted or (sent < wanted and not self.at_most):
            return (
                f"the ranks send {plural(sent, 'message')} in all; "
                f"{wanted} {_are(wanted)} needed.{_why(self.why)}"
            )
        return ""


@dataclass(frozen=True)
class Peers:
    """A rank sends only to the ranks that `allowed(case, rank)` gives."""

    allowed: Callable[[Case, int], tuple[int, ...]]
    text: str
    forbids: bool = False
    on_each_call: bool = True

    def problem(self, trace: Trace, case: Case) -> str:
        for event in trace:
            if event.op == "send" and event.peer not in self.allowed(case, event.rank):
                to = _and(tuple(map(str, self.allowed(case, event.rank)))) or "nobody"
                return (
                    f"rank {event.rank} sends to rank {event.peer}{_at(event)}; "
                    f"here it sends only to {to}."
                )
        return ""


@dataclass(frozen=True)
class BytesSent:
    """Each rank sends at most this many bytes in all its messages."""

    amount: Amount
    why: str = ""
    forbids: bool = False
    on_each_call: bool = False

    @property
    def text(self) -> str:
        return "sends no more bytes than needed"

    def problem(self, trace: Trace, case: Case) -> str:
        for rank in range(case.world_size):
            sent = sum(event.nbytes for event in trace.of(rank) if event.op == "send")
            most = amount_of(self.amount, case, rank)
            if sent > most:
                return f"rank {rank} sends {sent:,} bytes; {most:,} are enough.{_why(self.why)}"
        return ""


@dataclass(frozen=True)
class Order:
    """The ops of each rank come in the order that `wanted(case, rank)` gives."""

    wanted: Callable[[Case, int], tuple[str, ...]]
    text: str
    forbids: bool = False
    on_each_call: bool = False

    def problem(self, trace: Trace, case: Case) -> str:
        for rank in range(case.world_size):
            made = tuple(event.op for event in trace.of(rank) if event.op != "span")
            wanted = self.wanted(case, rank)
            if made != wanted:
                made_text = f"makes the calls {', '.join(made)}" if made else "makes no calls"
                wanted_text = ", ".join(wanted) or "none"
                return f"rank {rank} {made_text}; wanted: {wanted_text}."
        return ""


@dataclass(frozen=True)
class Holds:
    """Check something of the trace that no other rule says: `find` gives "" or what is wrong."""

    find: Callable[[Trace, Case], str]
    text: str
    forbids: bool = False
    on_each_call: bool = False

    def problem(self, trace: Trace, case: Case) -> str:
        return self.find(trace, case)


def amount_of(amount: Amount, case: Case, rank: int) -> int:
    """Return the number that an amount is on one rank of a case."""
    if isinstance(amount, str):
        return int(case.facts[amount])
    return amount if isinstance(amount, int) else amount(case, rank)


def _at(event: Event) -> str:
    return f" ({event.where})" if event.where else ""


def _times(count: int) -> str:
    return "once" if count == 1 else f"{count} times"


def _are(count: int) -> str:
    return "is" if count == 1 else "are"


def _why(text: str) -> str:
    return f" {text}" if text else ""


def _and(words: tuple[str, ...]) -> str:
    return (
        words[0]
        if len(words) == 1
        else ", ".join(words[:-1]) + " and " + words[-1]
        if words
        else ""
    )
