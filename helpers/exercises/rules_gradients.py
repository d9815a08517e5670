"""Rules on how many bytes a rank's collectives carry in all: a gradient travels once, or not at all."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from helpers.checks.rules import Amount, amount_of
from helpers.exercises.model import Case
from helpers.trace.events import Event, Trace
from helpers.views.plain import plural


@dataclass(frozen=True)
class TotalHandedIn:
    """The calls of each rank hand in at most so many bytes, all together, in at most so many calls.

    why: from (bytes handed in, case) to what the learner should think of.
    """

    text: str
    most_bytes: Amount
    most_calls: Amount
    why: Callable[[int, Case], str] = lambda nbytes, case: ""
    counts: Callable[[Event], bool] = lambda event: True
    forbids: bool = False
    on_each_call: bool = False

    def problem(self, trace: Trace, case: Case) -> str:
        for rank in range(case.world_size):
            events = [e for e in trace.of(rank) if e.op != "span" and self.counts(e)]
            handed = sum(event.nbytes for event in events)
            most, calls = (
                amount_of(amount, case, rank) for amount in (self.most_bytes, self.most_calls)
            )
            if handed > most:
                why = self.why(handed, case)
                return (
                    f"rank {rank} hands in {handed:,} bytes in all; {most:,} are enough."
                    f"{' ' * bool(why)}{why}"
                )
            if len(events) > calls:
                made = plural(len(events), "call")
                return f"rank {rank} makes {made} of {events[0].op}; {calls} are enough."
        return ""
