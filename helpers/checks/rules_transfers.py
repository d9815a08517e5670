"""Rules on transfers that are issued first and waited for later: what is in flight, and when.

The exercises on isend, irecv and batch_isend_irecv use them in addition to those of `rules.py`.
"""

from __future__ import annotations

from dataclasses import dataclass

from helpers.checks.rules import Amount, Case, amount_of
from helpers.trace.events import Event, Trace
from helpers.trace.mismatch import at

_P2P = frozenset({"send", "recv"})


@dataclass(frozen=True)
class NothingBlocks:
    """No send or recv waits within its own call."""

    text: str = "every transfer is issued first and waited for later"
    forbids: bool = False
    on_each_call: bool = True

    def problem(self, trace: Trace, case: Case) -> str:
        for event in trace:
            if event.op in _P2P and not event.asynchronous:
                return (
                    f"rank {event.rank} calls {event.call}{at(event)}, which waits at once; call "
                    f"i{event.op} and wait later."
                )
        return ""


@dataclass(frozen=True)
class EachIsWaitedFor:
    """Somebody calls wait() on every transfer that was issued."""

    text: str = "each transfer is waited for"
    forbids: bool = False
    on_each_call: bool = False

    def problem(self, trace: Trace, case: Case) -> str:
        for event in trace:
            if event.asynchronous and event.wait_ns is None and event.end_ns is None:
                alike = [e for e in trace.of(event.rank) if _alike(e, event)]
                number = f", number {alike.index(event) + 1} of {len(alike)}"
                which = number if len(alike) > 1 else ""
                return (
                    f"rank {event.rank} never waits for its {named(event)}{at(event)}{which}: until "
                    "wait() has returned nobody knows whether it is over."
                )
        return ""


def _alike(one: Event, other: Event) -> bool:
    return (one.op, one.peer, one.where) == (other.op, other.peer, other.where)


@dataclass(frozen=True)
class InFlightTogether:
    """The transfers of a rank come in rounds of `amount`, each round issued before its first wait."""

    amount: Amount
    text: str = "all transfers of a round are in flight together"
    forbids: bool = False
    on_each_call: bool = False

    def problem(self, trace: Trace, case: Case) -> str:
        for rank in range(case.world_size):
            events = [e for e in trace.of(rank) if e.op in _P2P and e.asynchronous]
            size = amount_of(self.amount, case, rank)
            for start in range(0, len(events), max(size, 1)):
                if broken := _waits_early(events[start : start + size]):
                    return broken
        return ""


def _waits_early(events: list[Event]) -> str:
    for early in events:
        for late in events:
            if early.wait_ns is not None and early.wait_ns < late.start_ns:
                return (
                    f"rank {early.rank} waits for its {named(early)}{at(early)} before it has "
                    f"issued its {named(late)}{at(late)}; issue both, then wait."
                )
    return ""


@dataclass(frozen=True)
class SpanInFlight:
    """Each rank does its span of this name once, after all its calls and before its first wait."""

    name: str
    forbids: bool = False
    on_each_call: bool = False

    @property
    def text(self) -> str:
        return f"{self.name}() runs while the transfers are in flight"

    def problem(self, trace: Trace, case: Case) -> str:
        for rank in range(case.world_size):
            named_so = [e for e in trace.of(rank) if e.op == "span" and e.call == self.name]
            # the learner may have put a span of this name around the call, which has its own
            spans = [e for e in named_so if not any(_within(o, e) for o in named_so)]
            if len(spans) != 1:
                often = "never" if not spans else f"{len(spans)} times"
                return f"rank {rank} calls {self.name}() {often}; once is right."
            if broken := self._outside(spans[0], [e for e in trace.of(rank) if e.op in _P2P]):
                return broken
        return ""

    def _outside(self, span: Event, calls: list[Event]) -> str:
        for call in calls:
            if call.start_ns > span.start_ns:
                return (
                    f"rank {call.rank} issues its {named(call)}{at(call)} only after "
                    f"{self.name}() began; issue it before."
                )
            waits = call.wait_ns if call.asynchronous else None
            if waits is not None and waits < (span.end_ns or span.start_ns):
                return (
                    f"rank {call.rank} waits for its {named(call)}{at(call)} before "
                    f"{self.name}() is done; wait after it."
                )
        return ""


def _within(inner: Event, outer: Event) -> bool:
    ends = inner.end_ns is not None and outer.end_ns is not None
    return (
        inner is not outer
        and ends
        and outer.start_ns <= inner.start_ns
        and (inner.end_ns or 0) <= (outer.end_ns or 0)
    )


def named(event: Event) -> str:
    """Name a transfer by its call and its peer: "isend to rank 1"."""
    call = event.call if event.call.startswith("i") or not event.asynchronous else event.op
    return f"{call} {'to' if event.op == 'send' else 'from'} rank {event.peer}"
