"""Rules on collectives: bytes handed in to one call and to all, calls in all, none left without a wait."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from helpers.checks.rules import Amount, Case, FirstProblem, amount_of, then
from helpers.trace.events import Trace
from helpers.trace.mismatch import at
from helpers.views.plain import plural


@dataclass(frozen=True)
class HandedIn(FirstProblem):
    """No call of a rank hands in more than this many bytes (`Event.nbytes`)."""

    most: Amount
    text: str
    why: str = ""
    on_each_call = True

    def problems(self, trace: Trace, case: Case) -> Iterator[str]:
        for event in trace.calls:
            # each call by itself: what they carry together is for `Travels`
            most = amount_of(self.most, case, event.rank)
            if event.nbytes > most:
                yield (
                    f"rank {event.rank} hands {event.nbytes:,} bytes to {event.call}{at(event)}; "
                    f"{most:,} are enough.{then(self.why)}"
                )


@dataclass(frozen=True)
class Calls(FirstProblem):
    """Each rank makes at most this many communication calls, and at least one."""

    most: int
    why: str = ""

    @property
    def text(self) -> str:
        return f"at most {plural(self.most, 'call')} on each rank"

    def problems(self, trace: Trace, case: Case) -> Iterator[str]:
        for rank in range(case.world_size):
            made = [event.call for event in trace.calls.of(rank)]
            if not made:
                yield f"rank {rank} makes no call: it cannot know what the other ranks have."
            if len(made) > self.most:
                yield (
                    f"rank {rank} makes {plural(len(made), 'call')} ({', '.join(made[:6])}); "
                    f"{self.most} are enough.{then(self.why)}"
                )


@dataclass(frozen=True)
class Travels(FirstProblem):
    """All calls of `op` on a rank together carry at most this many bytes, in at most this many calls."""

    op: str
    text: str
    nbytes: Amount = "bytes"
    calls: Amount = "calls"
    why: str = ""

    def problems(self, trace: Trace, case: Case) -> Iterator[str]:
        for rank in range(case.world_size):
            made = [event for event in trace.of(rank) if event.op == self.op]
            handed = sum(event.nbytes for event in made)
            most, calls = (amount_of(amount, case, rank) for amount in (self.nbytes, self.calls))
            # bytes first: too many of them is the larger mistake
            if handed > most:
                what = f"hands {handed:,} bytes to {self.op} in all; {most:,} are enough."
                yield f"rank {rank} {what}{then(self.why)}"
            if len(made) > calls:
                what = f"makes {plural(len(made), 'call')} of {self.op}; {calls} are enough."
                yield f"rank {rank} {what}{then(self.why)}"


@dataclass(frozen=True)
class Awaited(FirstProblem):
    """Somebody calls wait() on the Work of every collective that was started with async_op=True."""

    text: str = "no result is used before it is there"

    def problems(self, trace: Trace, case: Case) -> Iterator[str]:
        for event in trace.calls:
            # Also one that has ended meanwhile, which the answer could not know. What torch's own code has
            # started, as a functional collective does, is awaited when its result is used.
            awaited = event.wait_ns is not None or bool(event.by)
            if event.is_collective and event.asynchronous and not awaited:
                yield (
                    f"rank {event.rank} starts {event.call}{at(event)} with async_op=True and never calls "
                    "wait() on its Work: the tensor is used before it is ready."
                )


@dataclass(frozen=True)
class AwaitedByHand(Awaited):
    """As Awaited, for calls with async_op=True; functional collectives, which wait by themselves, go free."""

    def problems(self, trace: Trace, case: Case) -> Iterator[str]:
        # a functional collective shows in a trace as asynchronous, but its line has no async_op
        by_hand = trace.select(lambda e: e.where is not None and "async_op" in e.where.source)
        yield from super().problems(by_hand, case)


@dataclass(frozen=True)
class Root(FirstProblem):
    """Every collective that has a root names the rank which is the case's fact `named`."""

    named: str
    on_each_call = True

    @property
    def text(self) -> str:
        return f"every call names rank `{self.named}`"

    def problems(self, trace: Trace, case: Case) -> Iterator[str]:
        root = case.facts[self.named]
        for event in trace.calls:
            # all_reduce and its like have no root, and may be called as well
            if event.root is not None and event.root != root:
                yield (
                    f"rank {event.rank} names rank {event.root} in {event.call}{at(event)}; "
                    f"`{self.named}` is {root} in this case."
                )
