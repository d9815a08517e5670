"""Define rules on nonblocking transfers: which of them are in flight, and when.

The exercises on isend, irecv and batch_isend_irecv use these rules in addition to those of `rules.py`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product

from helpers.checks.rules import Amount, Case, FirstProblem, resolve_amount
from helpers.trace.events import Event, Trace
from helpers.trace.mismatch import at

P2P = frozenset({"send", "recv"})


@dataclass(frozen=True)
class NothingBlocks(FirstProblem):
    """No send or recv blocks within its call."""

    text: str = "every transfer is issued first and waited for later"
    on_each_call = True

    def problems(self, trace: Trace, case: Case) -> Iterator[str]:
        for event in trace:
            if event.op in P2P and not event.asynchronous:
                yield (
                    f"rank {event.rank} calls {event.call}{at(event)}, which blocks; call i{event.op} "
                    "and wait later."
                )


@dataclass(frozen=True)
class EachIsWaitedFor(FirstProblem):
    """The answer calls wait() on every issued transfer."""

    text: str = "each transfer is waited for"

    def problems(self, trace: Trace, case: Case) -> Iterator[str]:
        for event in trace:
            # a transfer needs no wait if the rank has seen its end, in whatever way
            if event.asynchronous and event.wait_ns is None and event.end_ns is None:
                # in a loop, all transfers have the same line, so a number identifies the transfer
                same_line = [
                    other for other in trace.of(event.rank) if _is_same_transfer(other, event)
                ]
                number = f", number {same_line.index(event) + 1} of {len(same_line)}"
                number_text = number if len(same_line) > 1 else ""
                yield (
                    f"rank {event.rank} never waits for its {transfer_name(event)}{at(event)}{number_text}: "
                    "the transfer may be incomplete until wait() returns."
                )


def _is_same_transfer(transfer: Event, other_transfer: Event) -> bool:
    return (transfer.op, transfer.peer, transfer.where) == (
        other_transfer.op,
        other_transfer.peer,
        other_transfer.where,
    )


@dataclass(frozen=True)
class InFlightTogether(FirstProblem):
    """A rank issues its transfers in rounds of `amount`, and waits for none before its round is issued."""

    amount: Amount
    text: str = "all transfers of a round are in flight together"

    def problems(self, trace: Trace, case: Case) -> Iterator[str]:
        for rank in range(case.world_size):
            events = [event for event in trace.of(rank) if event.op in P2P and event.asynchronous]
            size = max(resolve_amount(self.amount, case, rank), 1)
            for start in range(0, len(events), size):
                for early, late in product(events[start : start + size], repeat=2):
                    if early.wait_ns is not None and early.wait_ns < late.start_ns:
                        yield (
                            f"rank {rank} waits for its {transfer_name(early)}{at(early)} before it has "
                            f"issued its {transfer_name(late)}{at(late)}; issue both, then wait."
                        )


def transfer_name(event: Event) -> str:
    """Name a transfer by its call and its peer: "isend to rank 1"."""
    # batch_isend_irecv starts several transfers under its name, so the op is more specific
    call = event.call if event.call.startswith("i") or not event.asynchronous else event.op
    return f"{call} {'to' if event.op == 'send' else 'from'} rank {event.peer}"
