"""Define rules on the spans of a rank's work: the calls that start before, in or after them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from helpers.checks.rules import Case, FirstProblem
from helpers.checks.rules_transfers import P2P, transfer_name
from helpers.trace.events import Event, Trace
from helpers.trace.mismatch import at


@dataclass(frozen=True)
class IssuedInside(FirstProblem):
    """Every call of `op` is issued within a span of this name, and the span waits for none of these calls.

    A wait is too early if later calls of the same span have not been issued yet. applies: function that
    returns whether the rule holds for a case.
    """

    span: str
    op: str = "all_reduce"
    applies: Callable[[Case], bool] = lambda case: True

    @property
    def text(self) -> str:
        return f"every {self.op} starts before {self.span} ends, and no rank waits in between"

    def problems(self, trace: Trace, case: Case) -> Iterator[str]:
        for rank in range(case.world_size) if self.applies(case) else ():
            calls = [event for event in trace.of(rank) if event.op == self.op]
            spans = [
                event for event in trace.of(rank) if event.op == "span" and event.call == self.span
            ]
            if not calls:
                yield f"rank {rank} never calls {self.op}."
            for call in calls:
                if not any(_is_during(span, call.start_ns) for span in spans):
                    ended = any((span.end_ns or call.start_ns) < call.start_ns for span in spans)
                    yield (
                        f"rank {rank} calls {self.op}{at(call)} {'after' if ended else 'before'} "
                        f"{self.span}. Issue each call from a hook, as soon as its gradients are ready. One "
                        "gradient can make several calls ready."
                    )
            # judge each span separately, because waiting between two backward passes is right
            for span in spans:
                yield from self._blocking_problems(
                    [call for call in calls if _is_during(span, call.start_ns)]
                )

    def _blocking_problems(self, calls: list[Event]) -> Iterator[str]:
        last = max((call.start_ns for call in calls), default=0)
        for call in calls:
            if not call.asynchronous:
                yield (
                    f"rank {call.rank} calls {call.call}{at(call)}, which blocks: {self.span} stops "
                    "until all ranks make the call. Pass async_op=True."
                )
            if call.wait_ns is not None and call.wait_ns < last:
                yield (
                    f"rank {call.rank} waits for {call.call}{at(call)} before all calls are issued, so "
                    f"{self.span} is blocked. Do not wait in a hook; wait after all calls have started."
                )


@dataclass(frozen=True)
class SpanInFlight(FirstProblem):
    """Each rank runs its span of this name once, after issuing all its calls and before its first wait."""

    name: str

    @property
    def text(self) -> str:
        return f"{self.name}() runs while the transfers are in flight"

    def problems(self, trace: Trace, case: Case) -> Iterator[str]:
        for rank in range(case.world_size):
            same_name_spans = [
                event for event in trace.of(rank) if event.op == "span" and event.call == self.name
            ]
            # the learner may have added a span of this name around a call that already records such a span
            spans = [
                event
                for event in same_name_spans
                if not any(_is_within(other, event) for other in same_name_spans)
            ]
            if len(spans) != 1:
                count_text = f"{len(spans)} times" if spans else "never"
                yield f"rank {rank} calls {self.name}() {count_text}; expected: once."
                continue
            [span] = spans
            for call in (event for event in trace.of(rank) if event.op in P2P):
                if call.start_ns > span.start_ns:
                    yield (
                        f"rank {rank} issues its {transfer_name(call)}{at(call)} only after "
                        f"{self.name}() began; issue it before."
                    )
                # a blocking call waits at once, which NothingBlocks reports
                wait_ns = call.wait_ns if call.asynchronous else None
                if wait_ns is not None and wait_ns < (span.end_ns or span.start_ns):
                    yield (
                        f"rank {rank} waits for its {transfer_name(call)}{at(call)} before "
                        f"{self.name}() is done; wait after it."
                    )


def _is_during(span: Event, when_ns: int) -> bool:
    # a span without an end was cut off when the run ended
    return span.start_ns <= when_ns and (span.end_ns is None or when_ns <= span.end_ns)


def _is_within(inner: Event, outer: Event) -> bool:
    if inner is outer or inner.end_ns is None or outer.end_ns is None:
        return False
    return outer.start_ns <= inner.start_ns and inner.end_ns <= outer.end_ns
