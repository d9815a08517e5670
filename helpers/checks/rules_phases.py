"""Rules on what a rank's forward and its backward may send: each has calls of its own."""

from __future__ import annotations

from dataclasses import dataclass

from helpers.checks.rules import Amount, Case, amount_of
from helpers.checks.rules_collectives import Awaited
from helpers.trace.events import Trace
from helpers.trace.mismatch import at
from helpers.views.plain import plural
from helpers.views.traffic_ledger import calls_by_phase


@dataclass(frozen=True)
class CallsIn:
    """In all its spans of this name together, a rank makes exactly (or at most) this many calls.

    most_bytes: of what one of them hands in. missing, why, why_large: what to think of where there are
    fewer calls, more calls, larger ones. A rank that never came to the phase breaks nothing.
    """

    phase: str
    amount: Amount
    at_most: bool = False
    most_bytes: Amount | None = None
    missing: str = ""
    why: str = ""
    why_large: str = ""
    forbids: bool = False
    on_each_call: bool = False

    @property
    def text(self) -> str:
        if self.amount == 0:
            return f"{self.phase} does not communicate"
        how = "at most " if self.at_most else ""
        number = (
            plural(self.amount, "call") if isinstance(self.amount, int) else "only needed calls"
        )
        return f"{how}{number} in {self.phase}"

    def problem(self, trace: Trace, case: Case) -> str:
        for rank in range(case.world_size):
            phases = calls_by_phase(trace, rank)
            if self.phase not in phases:
                continue
            calls = phases[self.phase]
            wanted = amount_of(self.amount, case, rank)
            if len(calls) > wanted or (len(calls) < wanted and not self.at_most):
                made = ", ".join(f"{call.call}{at(call)}" for call in calls[:4])
                made = (
                    f"makes {plural(len(calls), 'call')} in {self.phase}: {made}" if calls else ""
                )
                made = made or f"makes no call in {self.phase}"
                why = self.why if len(calls) > wanted else self.missing
                right = "none is needed" if not wanted else f"{wanted} {_is(wanted)} right"
                return f"rank {rank} {made}; {right}.{_more(why)}"
            for call in calls:
                if self.most_bytes is None:
                    break
                most = amount_of(self.most_bytes, case, rank)
                if call.nbytes > most:
                    return (
                        f"rank {rank} hands {call.nbytes:,} bytes to {call.call}{at(call)} in "
                        f"{self.phase}; {most:,} are enough.{_more(self.why_large)}"
                    )
        return ""


@dataclass(frozen=True)
class AwaitedByHand(Awaited):
    """As Awaited, for calls with async_op=True; functional collectives, which wait by themselves, go free."""

    def problem(self, trace: Trace, case: Case) -> str:
        return super().problem(
            trace.select(lambda e: e.where is not None and "async_op" in e.where.source), case
        )


def _is(count: int) -> str:
    return "is" if count == 1 else "are"


def _more(text: str) -> str:
    return f" {text}" if text else ""
