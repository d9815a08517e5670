"""Rules on collectives that are to be in flight while a rank's span of its own work still lasts."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from helpers.checks.rules import Case
from helpers.trace.events import Event, Trace
from helpers.trace.mismatch import at


@dataclass(frozen=True)
class IssuedInside:
    """Every call of `op` is issued within a span of this name, without waiting for one of them there.

    Waiting counts as too early while later calls of the same span are still to be issued. applies:
    the cases in which it must hold.
    """

    span: str
    op: str = "all_reduce"
    applies: Callable[[Case], bool] = lambda case: True
    forbids: bool = False
    on_each_call: bool = False

    @property
    def text(self) -> str:
        return f"every {self.op} starts before {self.span} ends, and nobody waits in between"

    def problem(self, trace: Trace, case: Case) -> str:
        if not self.applies(case):
            return ""
        for rank in range(case.world_size):
            calls = [event for event in trace.of(rank) if event.op == self.op]
            spans = [e for e in trace.of(rank) if e.op == "span" and e.call == self.span]
            if not calls:
                return f"rank {rank} never calls {self.op}."
            for call in calls:
                if broken := self._outside(call, spans):
                    return broken
            for span in spans:
                inside = [call for call in calls if _within(call.start_ns, span)]
                if broken := self._held_up(inside):
                    return broken
        return ""

    def _outside(self, call: Event, spans: list[Event]) -> str:
        if any(_within(call.start_ns, span) for span in spans):
            return ""
        when = "after" if any(_ended_before(span, call) for span in spans) else "before"
        return (
            f"rank {call.rank} calls {self.op}{at(call)} {when} {self.span}. Issue each from a hook, as "
            "soon as its gradients are there; one gradient may make several ready at once."
        )

    def _held_up(self, calls: list[Event]) -> str:
        last = max((call.start_ns for call in calls), default=0)
        for call in calls:
            if not call.asynchronous:
                return (
                    f"rank {call.rank} calls {call.call}{at(call)}, which waits at once: "
                    f"{self.span} stands still until all ranks have answered. Pass async_op=True."
                )
            if call.wait_ns is not None and call.wait_ns < last:
                return (
                    f"rank {call.rank} waits for {call.call}{at(call)} while others are still to be "
                    f"issued: {self.span} stands still. Nobody waits in a hook; wait when all of them "
                    "are in flight."
                )
        return ""


def _within(when_ns: int, span: Event) -> bool:
    return span.start_ns <= when_ns and (span.end_ns is None or when_ns <= span.end_ns)


def _ended_before(span: Event, call: Event) -> bool:
    return span.end_ns is not None and span.end_ns < call.start_ns
