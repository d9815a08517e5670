"""Rules on collectives: bytes handed in to one call and to all, calls in all, none left without a wait."""

from __future__ import annotations

from dataclasses import dataclass

from helpers.checks.rules import Amount, Case, amount_of
from helpers.trace.events import Trace
from helpers.views.plain import plural


@dataclass(frozen=True)
class HandedIn:
    """No call of a rank hands in more than this many bytes (`Event.nbytes`)."""

    most: Amount
    text: str
    why: str = ""
    forbids: bool = False
    on_each_call: bool = True

    def problem(self, trace: Trace, case: Case) -> str:
        for event in trace.calls:
            most = amount_of(self.most, case, event.rank)
            if event.nbytes > most:
                at = f" ({event.where})" if event.where else ""
                return (
                    f"rank {event.rank} hands {event.nbytes:,} bytes to {event.call}{at}; "
                    f"{most:,} are enough.{' ' * bool(self.why)}{self.why}"
                )
        return ""


@dataclass(frozen=True)
class Calls:
    """Each rank makes at most this many communication calls, and at least one."""

    most: int
    why: str = ""
    forbids: bool = False
    on_each_call: bool = False

    @property
    def text(self) -> str:
        return f"at most {plural(self.most, 'call')} on each rank"

    def problem(self, trace: Trace, case: Case) -> str:
        for rank in range(case.world_size):
            made = [event.call for event in trace.of(rank) if event.op != "span"]
            if not made:
                return f"rank {rank} makes no call: it cannot know what the other ranks have."
            if len(made) > self.most:
                return (
                    f"rank {rank} makes {plural(len(made), 'call')} ({', '.join(made[:6])}); "
                    f"{self.most} are enough.{' ' * bool(self.why)}{self.why}"
                )
        return ""


@dataclass(frozen=True)
class Travels:
    """All calls of `op` on a rank together carry at most this many bytes, in at most this many calls."""

    op: str
    text: str
    nbytes: Amount = "bytes"
    calls: Amount = "calls"
    why: str = ""
    forbids: bool = False
    on_each_call: bool = False

    def problem(self, trace: Trace, case: Case) -> str:
        for rank in range(case.world_size):
            made = [event for event in trace.of(rank) if event.op == self.op]
            handed = sum(event.nbytes for event in made)
            most, calls = (amount_of(amount, case, rank) for amount in (self.nbytes, self.calls))
            if handed > most:
                what = f"hands {handed:,} bytes to {self.op} in all; {most:,} are enough."
            elif len(made) > calls:
                what = f"makes {plural(len(made), 'call')} of {self.op}; {calls} are enough."
            else:
                continue
            return f"rank {rank} {what}{' ' * bool(self.why)}{self.why}"
        return ""


@dataclass(frozen=True)
class Awaited:
    """Somebody calls wait() on the Work of every collective that was started with async_op=True."""

    text: str = "no result is used before it is there"
    forbids: bool = False
    on_each_call: bool = False

    def problem(self, trace: Trace, case: Case) -> str:
        for event in trace.calls:
            if event.is_collective and event.asynchronous and event.wait_ns is None:
                at = f" ({event.where})" if event.where else ""
                return (
                    f"rank {event.rank} starts {event.call}{at} with async_op=True and never calls "
                    "wait() on its Work: the tensor is used before it is ready."
                )
        return ""


@dataclass(frozen=True)
class Root:
    """Every collective that has a root names the rank which is the case's fact `named`."""

    named: str
    forbids: bool = False
    on_each_call: bool = True

    @property
    def text(self) -> str:
        return f"every call names rank `{self.named}`"

    def problem(self, trace: Trace, case: Case) -> str:
        root = case.facts[self.named]
        for event in trace.calls:
            if event.root is not None and event.root != root:
                at = f" ({event.where})" if event.where else ""
                return (
                    f"rank {event.rank} names rank {event.root} in {event.call}{at}; `{self.named}` is "
                    f"{root} in this case."
                )
        return ""
