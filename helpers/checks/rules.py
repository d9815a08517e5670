"""Define rules on the ranks' communication. Each reads a run's trace, and has a sentence for learners.

A rule is a small object with `text`, which the learner reads in the task and in the result, and `problem`,
which returns "" or the problem with this trace. Amounts may be a number, or a function of the case and the
rank. Rules teach, but they prove nothing, because a learner's process records its own trace.

This file contains the rules that count calls and messages. Rules on collectives, on nonblocking transfers,
and on calls within a span have separate files.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from helpers.trace.events import Event, Trace
from helpers.trace.mismatch import at
from helpers.views.one_port import port_rounds
from helpers.views.plain import join_words, plural
from helpers.views.traffic_ledger import calls_by_phase

Case = Any
"""The parts of a case that rules read: its world_size and its facts."""
Amount = int | str | Callable[[Case, int], int]
"""A number, the name of a fact of the case, or a function of (case, rank) that returns a number."""


class Rule(Protocol):
    """The interface of every rule.

    forbids: whether breaking the rule makes the outcome "forbidden call". on_each_call: whether the rule
    judges each call separately, so that it applies even to a run that ended early.
    """

    @property
    def text(self) -> str: ...

    @property
    def forbids(self) -> bool: ...

    @property
    def on_each_call(self) -> bool: ...

    def problem(self, trace: Trace, case: Case) -> str:
        """Return "", or a sentence that states which rank broke the rule, and how."""
        ...


class FirstProblem:
    """A rule that finds its problems one by one; the learner reads only the first one."""

    # these are not fields, because all rules of a class share them
    forbids = False
    on_each_call = False

    def problems(self, trace: Trace, case: Case) -> Iterator[str]:
        raise NotImplementedError

    def problem(self, trace: Trace, case: Case) -> str:
        return next(self.problems(trace, case), "")


@dataclass(frozen=True)
class OnlyCalls(FirstProblem):
    """Every communication call is one of these ops, given by torch's names, as in `Event.op`."""

    ops: tuple[str, ...]
    forbids = True
    on_each_call = True

    @property
    def text(self) -> str:
        return f"uses only {join_words(self.ops)}" if self.ops else "no communication"

    def problems(self, trace: Trace, case: Case) -> Iterator[str]:
        # spans are marks made by the rank, so only communication calls are judged
        allowed = (
            f"only {join_words(self.ops)} may be used here"
            if self.ops
            else "no communication is needed"
        )
        for event in trace.calls:
            if event.op not in self.ops:
                yield f"rank {event.rank} calls {event.call}{at(event)}; {allowed}."


@dataclass(frozen=True)
class Calls(FirstProblem):
    """Limits a rank's calls, and the bytes passed to them (`Event.nbytes`).

    op, phase: count only calls of this op, or within spans of this name; a rank that never reached the phase
    breaks no rule. exactly, most: the required or largest number of calls. bytes_per_call, total_bytes: the
    largest number of bytes in one call, and in all calls. all_ranks: count the calls of all ranks together.
    missing, why, large_advice: sentences added to the problem if calls are too few, too many, or too large;
    the last is `why` by default. If no limit is given, the case's facts `calls` and `bytes` are used as
    `most` and `total_bytes`.
    """

    op: str = ""
    exactly: Amount | None = None
    most: Amount | None = None
    phase: str = ""
    bytes_per_call: Amount | None = None
    total_bytes: Amount | None = None
    all_ranks: bool = False
    missing: str = ""
    why: str = ""
    large_advice: str = ""
    text: str = ""

    def __post_init__(self) -> None:
        if self.exactly is self.most is self.bytes_per_call is self.total_bytes is None:
            object.__setattr__(self, "most", "calls")
            object.__setattr__(self, "total_bytes", "bytes")
        object.__setattr__(self, "text", self.text or self._default_text())

    @property
    def on_each_call(self) -> bool:  # type: ignore[override]
        return self.exactly is self.most is self.total_bytes is None

    def _default_text(self) -> str:
        limit_text, count = ("", self.exactly) if self.most is None else ("at most ", self.most)
        if count is None:
            return "sends no more bytes than needed"
        if self.all_ranks:
            return "no more messages than needed" if limit_text else "the right number of messages"
        if self.phase and count == 0:
            return f"{self.phase} does not communicate"
        if self.op:
            number = count if isinstance(count, int) else "the right number of"
            return f"{limit_text}{number} {self.op} on each rank"
        calls = plural(count, "call") if isinstance(count, int) else "only needed calls"
        return f"{limit_text}{calls} {f'in {self.phase}' if self.phase else 'on each rank'}"

    def problems(self, trace: Trace, case: Case) -> Iterator[str]:
        for rank in range(1 if self.all_ranks else case.world_size):
            calls = self._counted_calls(trace, rank)
            if calls is None:
                continue
            sent = sum(call.nbytes for call in calls)
            # check the bytes first, because sending too many bytes is the larger mistake
            if self.total_bytes is not None and sent > (
                limit := resolve_amount(self.total_bytes, case, rank)
            ):
                verb, where = (
                    ("sends", "")
                    if self.op == "send"
                    else ("passes", f" to {self.op or 'calls'} in total")
                )
                yield (
                    f"rank {rank} {verb} {sent:,} bytes{where}; the limit is {limit:,}."
                    f"{with_space(self.why)}"
                )
            count = self.exactly if self.most is None else self.most
            expected = len(calls) if count is None else resolve_amount(count, case, rank)
            if is_wrong_count(len(calls), expected, self.most is not None):
                why_fewer = self.missing if self.phase else self.why
                why = with_space(self.why if len(calls) > expected else why_fewer)
                yield f"{self._describe_count(rank, calls, expected)}{why}"
            if not (calls or self.op or self.phase or self.most is None):
                yield f"rank {rank} makes no call: it cannot know what the other ranks have."
            for call in calls if self.bytes_per_call is not None else ():
                if call.nbytes > (limit := resolve_amount(self.bytes_per_call or 0, case, rank)):
                    where = f"{call.call}{at(call)}{f' in {self.phase}' if self.phase else ''}"
                    violation = f"passes {call.nbytes:,} bytes to {where}; the limit is {limit:,}."
                    yield f"rank {rank} {violation}{with_space(self.large_advice or self.why)}"

    def _counted_calls(self, trace: Trace, rank: int) -> list[Event] | None:
        """Return the counted calls, or None for a rank that stopped before the phase."""
        calls: list[Event] | None = [*(trace if self.all_ranks else trace.of(rank))]
        if self.phase:
            calls = calls_by_phase(trace, rank).get(self.phase)
        return calls and [
            event for event in calls if (event.op == self.op if self.op else event.op != "span")
        ]

    def _describe_count(self, rank: int, calls: Sequence[Event], expected: int) -> str:
        limit_text = "at most " if self.most is not None and expected else ""
        count, expected_text = len(calls), f"expected: {limit_text}{expected or 'none'}"
        if self.all_ranks:
            return f"the ranks send {plural(count, 'message')} in total; {expected_text}."
        if self.phase:
            call_names = ", ".join(f"{call.call}{at(call)}" for call in calls[:4])
            found_text = f"{plural(count, 'call')} in {self.phase}: {call_names}"
            found_text = found_text if calls else f"no call in {self.phase}"
            return f"rank {rank} makes {found_text}; {expected_text}."
        if not self.op:
            call_names = ", ".join(call.call for call in calls[:6])
            return f"rank {rank} makes {plural(count, 'call')} ({call_names}); {expected_text}."
        if self.total_bytes is not None:
            return f"rank {rank} makes {plural(count, 'call')} of {self.op}; {expected_text}."
        expected_text = f"expected: {limit_text}{_count_text(expected)}"
        return f"rank {rank} calls {self.op} {_count_text(count)}; {expected_text}."


@dataclass(frozen=True)
class OnePortRounds(FirstProblem):
    """All messages together take at most this many rounds.

    As in the formulas with latency and bandwidth, two messages from (or to) one rank take two rounds, even if
    neither depends on the other.
    """

    amount: Callable[[Case], int]
    why: str = ""
    text: str = "takes no more rounds than needed"

    def problems(self, trace: Trace, case: Case) -> Iterator[str]:
        rounds, max_rounds = port_rounds(trace), self.amount(case)
        if len(rounds) > max_rounds:
            arrows = [f"{message.src} → {message.dst}" for message in rounds[-1]]
            last = ", ".join([*arrows[:4], *["…"] * (len(arrows) > 4)])
            yield (
                f"the messages take {plural(len(rounds), 'round')}; expected: at most {max_rounds} (the last "
                f"round: {last}).{with_space(self.why)}"
            )


@dataclass(frozen=True)
class Peers(FirstProblem):
    """A rank sends only to the ranks that `allowed(case, rank)` returns."""

    allowed: Callable[[Case, int], tuple[int, ...]]
    text: str
    on_each_call = True

    def problems(self, trace: Trace, case: Case) -> Iterator[str]:
        for event in trace:
            # look only at sends, because each message has exactly one, while its receiver may receive from
            # any source
            if event.op == "send" and event.peer not in self.allowed(case, event.rank):
                allowed = self.allowed(case, event.rank)
                ranks = f"only to rank{'s' * (len(allowed) > 1)} {join_words([*map(str, allowed)])}"
                requirement = f"it must send {ranks if allowed else 'to no rank'}"
                yield f"rank {event.rank} sends to rank {event.peer}{at(event)}; here {requirement}."


@dataclass(frozen=True)
class Order(FirstProblem):
    """Each rank calls its ops in the order returned by `wanted(case, rank)`."""

    wanted: Callable[[Case, int], tuple[str, ...]]
    text: str

    def problems(self, trace: Trace, case: Case) -> Iterator[str]:
        for rank in range(case.world_size):
            # compare the order in which calls were issued, because waits may come in any order
            ops = tuple(event.op for event in trace.calls.of(rank))
            wanted = self.wanted(case, rank)
            if ops != wanted:
                ops_text = f"makes the calls {', '.join(ops)}" if ops else "makes no calls"
                yield f"rank {rank} {ops_text}; expected: {', '.join(wanted) or 'none'}."


@dataclass(frozen=True)
class Predicate:
    """Checks a condition of the trace without a separate rule class: `find` returns "" or the problem."""

    find: Callable[[Trace, Case], str]
    text: str
    forbids: bool = False
    on_each_call: bool = False

    def problem(self, trace: Trace, case: Case) -> str:
        return self.find(trace, case)


# --- numbers and words ----------------------------------------------------------------------------


def resolve_amount(amount: Amount, case: Case, rank: int) -> int:
    """Return the value of an amount on one rank of a case."""
    # rules are written once for all cases, so a name represents a number drawn in the case
    if isinstance(amount, str):
        return int(case.facts[amount])
    return amount if isinstance(amount, int) else amount(case, rank)


def is_wrong_count(count: int, expected: int, at_most: bool) -> bool:
    """Return whether a number differs from `expected`. With `at_most`, smaller numbers are also right."""
    return count > expected or (count < expected and not at_most)


def with_space(sentence: str) -> str:
    """Return a sentence with a space before it, to be appended to others; "" for an empty sentence."""
    return f" {sentence}" if sentence else ""


def _count_text(count: int) -> str:
    return "once" if count == 1 else f"{count} times"
