"""Rules on a pipeline's transfers: each activation and gradient travels as soon as it is there.

Read from the trace: the spans F0, B0, ... of the stage that the check hands out, and the calls around.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from helpers.exercises.model import Case
from helpers.trace.events import Event, Trace
from helpers.trace.mismatch import at

_WORDS = {"F": ("activation", "forward"), "B": ("gradient", "backward")}


@dataclass(frozen=True)
class PassedOnAtOnce:
    """What a stage has computed leaves before it computes again, and it waits for no more than it needs."""

    text: str = "each activation and gradient is sent as soon as it is there"
    forbids: bool = False
    on_each_call: bool = False

    def problem(self, trace: Trace, case: Case) -> str:
        for rank in range(case.world_size):
            for kind, step in (("F", 1), ("B", -1)):
                if broken := self._late(trace, rank, kind, rank + step):
                    return broken
                if broken := self._early(trace, rank, kind, rank - step):
                    return broken
        return ""

    def _late(self, trace: Trace, rank: int, kind: str, peer: int) -> str:
        if not 0 <= peer < trace.world_size:
            return ""
        what, _ = _WORDS[kind]
        sent = [e for e in trace.of(rank) if e.op == "send" and e.peer == peer]
        for count, (span, following) in enumerate(_spans(trace, rank, kind), 1):
            if following and sum(e.start_ns < following.start_ns for e in sent) < count:
                return (
                    f"rank {rank} begins {following.call} before it has sent what {span.call} gave: "
                    f"rank {peer} idles meanwhile. Send each {what} as soon as it is there."
                )
        return ""

    def _early(self, trace: Trace, rank: int, kind: str, peer: int) -> str:
        if not 0 <= peer < trace.world_size:
            return ""
        what, word = _WORDS[kind]
        taken = [e for e in trace.of(rank) if e.op == "recv" and e.peer == peer]
        for count, (span, _) in enumerate(_spans(trace, rank, kind), 1):
            waited = [e for e in taken if _held_up_from(e) < span.start_ns]
            if len(waited) < count:
                return (
                    f"rank {rank} runs {span.call} before it has waited for its {what}: with irecv the "
                    "data is there only after wait()."
                )
            if len(waited) > count:
                return (
                    f"rank {rank} waits for {len(waited)} {what}s{at(waited[-1])} before its {word} "
                    f"{span.call}, which needs one of them: receive each when its turn has come."
                )
        return ""


def _spans(trace: Trace, rank: int, kind: str) -> Iterator[tuple[Event, Event | None]]:
    """Give each span of a kind with the span that follows it, of whatever kind."""
    spans = [e for e in trace.of(rank) if e.op == "span" and e.call[:1] in _WORDS]
    for span, following in zip(spans, [*spans[1:], None], strict=True):
        if span.call[:1] == kind:
            yield span, following


def _held_up_from(event: Event) -> float:
    """Give when the rank began to wait for a receive: at once, at its wait(), or never."""
    if not event.asynchronous:
        return event.start_ns
    return float("inf") if event.wait_ns is None else event.wait_ns
