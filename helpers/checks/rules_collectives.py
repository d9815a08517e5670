"""Define rules on collectives: asynchronous ones must be waited for, and the root must be right."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from helpers.checks.rules import Case, FirstProblem
from helpers.trace.events import Trace
from helpers.trace.mismatch import at


@dataclass(frozen=True)
class WaitsForAll(FirstProblem):
    """The answer calls wait() on the Work of every collective that it starts with async_op=True.

    A functional collective, as used by DTensor, waits automatically when its result is read.
    """

    text: str = "no result is used before it is ready"

    def problems(self, trace: Trace, case: Case) -> Iterator[str]:
        for event in trace.calls:
            # A wait is required even if the collective has already ended, because the answer could not know
            # this. A collective started by torch, such as a functional one, is awaited when its result is
            # used.
            awaited = event.wait_ns is not None or bool(event.by)
            if event.is_collective and event.asynchronous and not awaited:
                yield (
                    f"rank {event.rank} starts {event.call}{at(event)} with async_op=True and never calls "
                    "wait() on its Work: the tensor is used before it is ready."
                )


@dataclass(frozen=True)
class Root(FirstProblem):
    """Every collective with a root uses the rank in the case's fact `named`."""

    named: str
    on_each_call = True

    @property
    def text(self) -> str:
        return f"every call names rank `{self.named}`"

    def problems(self, trace: Trace, case: Case) -> Iterator[str]:
        root = case.facts[self.named]
        for event in trace.calls:
            # all_reduce and similar collectives have no root, and are also allowed
            if event.root is not None and event.root != root:
                yield (
                    f"rank {event.rank} passes rank {event.root} to {event.call}{at(event)}; "
                    f"`{self.named}` is {root} in this case."
                )
