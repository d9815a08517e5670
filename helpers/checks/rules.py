"""How the ranks must communicate: rules on the trace of a run, each one sentence for the learner.

A rule is a small object with `text`, which the learner reads before and after, and `problem`, which
gives "" or what is wrong with this trace. Amounts may be a number, or a function of the case and the
rank. They teach; what a learner's process records about itself is not a proof.

Here are the rules that count calls and messages. Those on collectives, on transfers that are waited for
later, and on calls within a span have files of their own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Protocol

from helpers.trace.events import Trace
from helpers.trace.mismatch import at
from helpers.views.one_port import port_rounds
from helpers.views.plain import plural

Case = Any
"""What rules ask of a case: its world_size, and its facts."""
Amount = int | str | Callable[[Case, int], int]
"""A number, the name of a fact of the case, or a function of (case, rank) that gives one."""


class Rule(Protocol):
    """What every rule can do.

    forbids: breaking it makes the outcome "forbidden call". on_each_call: it looks at each call by itself,
    so that it holds, or not, also of a run that ended early.
    """

    @property
    def text(self) -> str: ...

    @property
    def forbids(self) -> bool: ...

    @property
    def on_each_call(self) -> bool: ...

    def problem(self, trace: Trace, case: Case) -> str:
        """Return "" or one sentence that says which rank broke the rule, and how."""
        ...


class FirstProblem:
    """A rule that finds its problems one by one, of which the learner reads the first."""

    # not fields: they belong to the kind of rule
    forbids = False
    on_each_call = False

    def problems(self, trace: Trace, case: Case) -> Iterator[str]:
        raise NotImplementedError

    def problem(self, trace: Trace, case: Case) -> str:
        return next(self.problems(trace, case), "")


@dataclass(frozen=True)
class OnlyCalls(FirstProblem):
    """Every communication call is one of these ops (`Event.op` in torch's words)."""

    ops: tuple[str, ...]
    forbids = True
    on_each_call = True

    @property
    def text(self) -> str:
        return f"uses only {_and(self.ops)}" if self.ops else "not at all"

    def problems(self, trace: Trace, case: Case) -> Iterator[str]:
        # spans are the rank's own marks: only calls that communicate are held against the rule
        allowed = f"only {_and(self.ops)} may be used here" if self.ops else "none is needed"
        for event in trace.calls:
            if event.op not in self.ops:
                yield f"rank {event.rank} calls {event.call}{at(event)}; {allowed}."


@dataclass(frozen=True)
class Count(FirstProblem):
    """Each rank makes exactly (or at most) this many calls of an op."""

    op: str
    amount: Amount
    at_most: bool = False
    why: str = ""

    @property
    def text(self) -> str:
        how = "at most " if self.at_most else ""
        number = str(self.amount) if isinstance(self.amount, int) else "the right number of"
        return f"{how}{number} {self.op} on each rank"

    def problems(self, trace: Trace, case: Case) -> Iterator[str]:
        how = "at most " if self.at_most else ""
        for rank in range(case.world_size):
            made = sum(event.op == self.op for event in trace.of(rank))
            wanted = amount_of(self.amount, case, rank)
            if is_off(made, wanted, self.at_most):
                yield (
                    f"rank {rank} calls {self.op} {_times(made)}; "
                    f"{how}{_times(wanted)} is right.{then(self.why)}"
                )


@dataclass(frozen=True)
class TotalMessages(FirstProblem):
    """All ranks together send exactly (or at most) this many messages."""

    amount: Callable[[Case], int]
    at_most: bool = False
    why: str = ""

    @property
    def text(self) -> str:
        return "no more messages than needed" if self.at_most else "the right number of messages"

    def problems(self, trace: Trace, case: Case) -> Iterator[str]:
        # of all ranks together: who sends them is left to the answer
        sent = sum(event.op == "send" for event in trace)
        wanted = self.amount(case)
        if is_off(sent, wanted, self.at_most):
            yield (
                f"the ranks send {plural(sent, 'message')} in all; "
                f"{number_is(wanted)} needed.{then(self.why)}"
            )


@dataclass(frozen=True)
class PortRounds(FirstProblem):
    """All messages together take at most this many rounds.

    Two messages that leave (or reach) one rank are two rounds, even if neither depends on the other: this is
    what the formulas with latency and bandwidth count.
    """

    amount: Callable[[Case], int]
    why: str = ""
    text: str = "takes no more rounds than needed"

    def problems(self, trace: Trace, case: Case) -> Iterator[str]:
        rounds, most = port_rounds(trace), self.amount(case)
        if len(rounds) > most:
            arrows = [f"{message.src} → {message.dst}" for message in rounds[-1]]
            last = ", ".join([*arrows[:4], *["…"] * (len(arrows) > 4)])
            yield (
                f"the messages take {plural(len(rounds), 'round')}; {number_is(most)} enough "
                f"(in the last one: {last}).{then(self.why)}"
            )


@dataclass(frozen=True)
class Peers(FirstProblem):
    """A rank sends only to the ranks that `allowed(case, rank)` gives."""

    allowed: Callable[[Case, int], tuple[int, ...]]
    text: str
    on_each_call = True

    def problems(self, trace: Trace, case: Case) -> Iterator[str]:
        for event in trace:
            # only sends: each message has one, and its receiver may take from any source
            if event.op == "send" and event.peer not in self.allowed(case, event.rank):
                to = _and(tuple(map(str, self.allowed(case, event.rank)))) or "nobody"
                yield (
                    f"rank {event.rank} sends to rank {event.peer}{at(event)}; "
                    f"here it sends only to {to}."
                )


@dataclass(frozen=True)
class BytesSent(FirstProblem):
    """Each rank sends at most this many bytes in all its messages."""

    amount: Amount
    why: str = ""
    text = "sends no more bytes than needed"

    def problems(self, trace: Trace, case: Case) -> Iterator[str]:
        for rank in range(case.world_size):
            # messages only: what a collective sends is gloo's affair
            sent = sum(event.nbytes for event in trace.of(rank) if event.op == "send")
            most = amount_of(self.amount, case, rank)
            if sent > most:
                yield f"rank {rank} sends {sent:,} bytes; {most:,} are enough.{then(self.why)}"


@dataclass(frozen=True)
class Order(FirstProblem):
    """The ops of each rank come in the order that `wanted(case, rank)` gives."""

    wanted: Callable[[Case, int], tuple[str, ...]]
    text: str

    def problems(self, trace: Trace, case: Case) -> Iterator[str]:
        for rank in range(case.world_size):
            # in the order of issue, as a trace has it: waits may come in any other
            made = tuple(event.op for event in trace.calls.of(rank))
            wanted = self.wanted(case, rank)
            if made != wanted:
                made_text = f"makes the calls {', '.join(made)}" if made else "makes no calls"
                yield f"rank {rank} {made_text}; wanted: {', '.join(wanted) or 'none'}."


@dataclass(frozen=True)
class Holds:
    """Check something of the trace that no other rule says: `find` gives "" or what is wrong."""

    find: Callable[[Trace, Case], str]
    text: str
    forbids: bool = False
    on_each_call: bool = False

    def problem(self, trace: Trace, case: Case) -> str:
        return self.find(trace, case)


# --- numbers and words ----------------------------------------------------------------------------


def amount_of(amount: Amount, case: Case, rank: int) -> int:
    """Return the number that an amount is on one rank of a case."""
    # by name where the case has drawn the number: rules are written once for all cases
    if isinstance(amount, str):
        return int(case.facts[amount])
    return amount if isinstance(amount, int) else amount(case, rank)


def is_off(made: int, wanted: int, at_most: bool) -> bool:
    """Whether a number is not the one that is wanted; fewer are right where it says `at_most`."""
    return made > wanted or (made < wanted and not at_most)


def number_is(count: int) -> str:
    """Write a number with its verb: "1 is", "2 are"."""
    return f"{count} {'is' if count == 1 else 'are'}"


def then(sentence: str) -> str:
    """Write one more sentence after another; nothing, where there is none."""
    return f" {sentence}" if sentence else ""


def _times(count: int) -> str:
    return "once" if count == 1 else f"{count} times"


def _and(words: tuple[str, ...]) -> str:
    return " and ".join(filter(None, [", ".join(words[:-1]), *words[-1:]]))
