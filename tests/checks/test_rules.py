"""Test each rule with a trace that keeps it, a trace that breaks it, and the sentence for its author.

The traces are written by hand, so no rank is started. Times are small whole numbers: a call is issued at
`start`, its wait is at `wait`.
"""

from __future__ import annotations

import inspect
from dataclasses import replace
from typing import Any, NamedTuple

import pytest
import torch

from helpers.checks import rules, rules_collectives, rules_spans, rules_transfers
from helpers.checks.case import Case
from helpers.checks.rules import (
    Calls,
    FirstProblem,
    OnePortRounds,
    OnlyCalls,
    Order,
    Peers,
    Predicate,
    Rule,
)
from helpers.checks.rules_collectives import Root, WaitsForAll
from helpers.checks.rules_spans import IssuedInside, SpanInFlight
from helpers.checks.rules_transfers import EachIsWaitedFor, InFlightTogether, NothingBlocks
from helpers.trace.events import Event, Place, Trace

CASE = Case("a case", [(torch.zeros(2),)] * 2, None, facts={"src": 1, "bytes": 8, "calls": 1})
LINE = Place("answer", 7, "f", "cell 3", "work = dist.all_reduce(x, async_op=True)")


def send(rank: int = 0, peer: int = 1, **more: Any) -> Event:
    return _call(Event(rank, 0, "send", "send", peer=peer, nbytes=8), more)


def recv(rank: int = 1, peer: int = 0, **more: Any) -> Event:
    return _call(Event(rank, 0, "recv", "recv", peer=peer, nbytes=8), more)


def isend(rank: int = 0, peer: int = 1, **more: Any) -> Event:
    return send(rank, peer, **{"call": "isend", "asynchronous": True, **more})


def irecv(rank: int = 1, peer: int = 0, **more: Any) -> Event:
    return recv(rank, peer, **{"call": "irecv", "asynchronous": True, **more})


def collective(rank: int, op: str = "all_reduce", **more: Any) -> Event:
    return _call(Event(rank, 0, op, op, "0", (0, 1), nbytes=8), more)


def started(rank: int, op: str = "all_reduce", **more: Any) -> Event:
    return collective(rank, op, **{"asynchronous": True, "where": LINE, **more})


def span(rank: int, name: str = "forward", start: int = 0, end: int = 9) -> Event:
    return Event(rank, 0, "span", name, start_ns=start, end_ns=end)


def _call(event: Event, more: dict[str, Any]) -> Event:
    times = {"start_ns": more.pop("start", 1), "wait_ns": more.pop("wait", None)}
    return replace(event, **{**times, **more})


def both(call: Event) -> list[Event]:
    """Return the same call on both ranks."""
    return [replace(call, rank=rank) for rank in (0, 1)]


class Row(NamedTuple):
    rule: Rule
    keeps: list[Event]
    breaks: list[Event]
    says: str


IN_BACKWARD = [
    *[span(0, "backward"), started(0, wait=20), started(0, start=8, wait=21)],
    *[span(1, "backward"), started(1, wait=20), started(1, start=8, wait=21)],
]
# the first rank's span is within one of the same name, as if a learner had put a span around the call
MEANWHILE = [
    *[isend(wait=6), span(0, "work", 2, 5), span(0, "work", 1, 6)],
    *[irecv(wait=6), span(1, "work", 2, 5)],
]
TABLE = [
    # --- kinds and numbers of calls -------------------------------------------------------------
    Row(
        OnlyCalls(("send", "recv")),
        [send(), recv()],
        [send(), collective(1, "barrier", where=LINE)],
        "rank 1 calls barrier (cell 3, line 7); only send and recv may be used here.",
    ),
    Row(OnlyCalls(()), [span(0)], [send()], "rank 0 calls send; no communication is needed."),
    Row(
        Calls("broadcast", 1, why="One moves it all."),
        both(collective(0, "broadcast")),
        [collective(0, "broadcast"), *both(collective(1, "broadcast"))],
        "rank 0 calls broadcast 2 times; expected: once. One moves it all.",
    ),
    Row(
        Calls("broadcast", "calls"),
        both(collective(0, "broadcast")),
        [collective(0, "broadcast")],
        "rank 1 calls broadcast 0 times; expected: once.",
    ),
    Row(
        Calls("send", most=lambda case, rank: 1 - rank),
        [],
        [send(1, 0)],
        "rank 1 calls send once; expected: 0 times.",
    ),
    Row(
        Calls(most=1, why="Put them into one tensor."),
        both(collective(0)),
        [*both(collective(0)), collective(1, "barrier")],
        "rank 1 makes 2 calls (all_reduce, barrier); expected: at most 1. Put them into one tensor.",
    ),
    Row(
        Calls(most=2),
        both(collective(0)),
        [collective(0), span(1)],
        "rank 1 makes no call: it cannot know what the other ranks have.",
    ),
    Row(
        Calls(
            "send",
            lambda case, rank: case.world_size - 1,
            all_ranks=True,
            text="the right number of messages",
        ),
        [send(), recv()],
        [send(), send(1, 0)],
        "the ranks send 2 messages in total; expected: 1.",
    ),
    Row(
        OnePortRounds(lambda case: 1),
        [send(0, 1), recv(1, 0)],
        [send(0, 1), send(0, 1, start=2), recv(1, 0), recv(1, 0, start=2)],
        "the messages take 2 rounds; expected: at most 1 (the last round: 0 → 1).",
    ),
    Row(
        Order(lambda case, rank: ("send", "barrier") if rank == 0 else (), "sends first"),
        [send(), span(0), collective(0, "barrier")],
        [collective(0, "barrier"), send()],
        "rank 0 makes the calls barrier, send; expected: send, barrier.",
    ),
    Row(
        Order(lambda case, rank: () if rank else ("send",), "rank 0 sends"),
        [send()],
        [send(), recv()],
        "rank 1 makes the calls recv; expected: none.",
    ),
    Row(
        Peers(lambda case, rank: (rank + 1,), "sends on"),
        [send(0, 1)],
        [send(0, 1), send(1, 0, where=LINE)],
        "rank 1 sends to rank 0 (cell 3, line 7); here it must send only to rank 2.",
    ),
    Row(
        Peers(lambda case, rank: (1,) if rank == 0 else (), "only rank 0 sends"),
        [send()],
        [send(1, 0)],
        "rank 1 sends to rank 0; here it must send to no rank.",
    ),
    # --- amounts --------------------------------------------------------------------------------
    Row(
        Calls("send", total_bytes="bytes", why="Send what changed."),
        [send(), recv(nbytes=4096)],
        [send(), send(nbytes=1024)],
        "rank 0 sends 1,032 bytes; the limit is 8. Send what changed.",
    ),
    Row(
        Calls(bytes_per_call="bytes", text="one chunk at a time"),
        both(collective(0)) * 2,
        [collective(0), collective(1, nbytes=16, where=LINE)],
        "rank 1 passes 16 bytes to all_reduce (cell 3, line 7); the limit is 8.",
    ),
    Row(
        Calls("all_reduce", text="no more than needed", why="Half of it is known."),
        [*both(collective(0)), *both(collective(0, "barrier", nbytes=99))],
        both(collective(0, nbytes=16)),
        "rank 0 passes 16 bytes to all_reduce in total; the limit is 8. Half of it is known.",
    ),
    Row(
        Calls("all_reduce", text="in one call"),
        both(collective(0)),
        [collective(0), *[collective(1, nbytes=4)] * 2],
        "rank 1 makes 2 calls of all_reduce; expected: at most 1.",
    ),
    # --- collectives ----------------------------------------------------------------------------
    Row(
        Root("src"),
        both(collective(0, "broadcast", root=1)),
        [collective(0, "broadcast", root=0, where=LINE), collective(1, "broadcast", root=1)],
        "rank 0 passes rank 0 to broadcast (cell 3, line 7); `src` is 1 in this case.",
    ),
    Row(
        WaitsForAll(),
        [started(0, wait=2), collective(1)],
        [started(0, wait=2), started(1)],
        "rank 1 starts all_reduce (cell 3, line 7) with async_op=True and never calls wait() on its "
        "Work: the tensor is used before it is ready.",
    ),
    Row(  # a functional collective is awaited when its result is used
        WaitsForAll(),
        [started(0, wait=2), started(1, by="_library/autograd.py")],
        [started(0, wait=2), started(1)],
        "rank 1 starts all_reduce (cell 3, line 7) with async_op=True and never calls wait() on its "
        "Work: the tensor is used before it is ready.",
    ),
    Row(
        WaitsForAll(),
        [started(0, wait=2), started(1, by="_library/autograd.py")],
        [started(0, wait=2), started(1)],
        "rank 1 starts all_reduce (cell 3, line 7) with async_op=True and never calls wait() on its "
        "Work: the tensor is used before it is ready.",
    ),
    # --- transfers ------------------------------------------------------------------------------
    Row(
        NothingBlocks(),
        [isend(), irecv(), *both(collective(0))],
        [isend(), recv(where=LINE)],
        "rank 1 calls recv (cell 3, line 7), which blocks; call irecv and wait later.",
    ),
    Row(
        EachIsWaitedFor(),
        [isend(wait=2), irecv(end_ns=3), send(1, 0)],
        [isend(wait=2), irecv()],
        "rank 1 never waits for its irecv from rank 0: the transfer may be incomplete until wait() "
        "returns.",
    ),
    Row(
        EachIsWaitedFor(),
        [],
        [isend(wait=2, where=LINE), isend(start=3, where=LINE)],
        "rank 0 never waits for its isend to rank 1 (cell 3, line 7), number 2 of 2: the transfer may "
        "be incomplete until wait() returns.",
    ),
    Row(
        InFlightTogether(2),
        [isend(wait=3), irecv(0, 1, start=2, wait=4), isend(start=5, wait=6)],
        [isend(wait=2), irecv(0, 1, start=3, wait=4)],
        "rank 0 waits for its isend to rank 1 before it has issued its irecv from rank 1; issue both, "
        "then wait.",
    ),
    # --- spans of a rank's work -----------------------------------------------------------------
    Row(
        Calls(phase="forward", exactly=1, missing="Nobody has the sum."),
        [span(0), collective(0), collective(0, start=20)],
        [span(0), collective(0, start=20)],
        "rank 0 makes no call in forward; expected: 1. Nobody has the sum.",
    ),
    Row(
        Calls(phase="forward", exactly=0, why="Each rank has all of it."),
        [span(0), collective(0, start=20)],
        [span(1), collective(1, where=LINE)],
        "rank 1 makes 1 call in forward: all_reduce (cell 3, line 7); expected: none. Each rank has "
        "all of it.",
    ),
    Row(
        Calls(phase="forward", most=2, bytes_per_call="bytes", large_advice="Send the shard."),
        [span(0), collective(0)],
        [span(0), collective(0, nbytes=16)],
        "rank 0 passes 16 bytes to all_reduce in forward; the limit is 8. Send the shard.",
    ),
    Row(
        IssuedInside("backward"),
        IN_BACKWARD,
        [span(0, "backward"), started(0, start=12, wait=20)],
        "rank 0 calls all_reduce (cell 3, line 7) after backward. Issue each call from a hook, as soon as "
        "its gradients are ready. One gradient can make several calls ready.",
    ),
    Row(
        IssuedInside("backward"),
        IN_BACKWARD,
        [span(0, "backward"), collective(0)],
        "rank 0 calls all_reduce, which blocks: backward stops until all ranks make the call. "
        "Pass async_op=True.",
    ),
    Row(
        IssuedInside("backward"),
        IN_BACKWARD,
        [span(0, "backward"), started(0, wait=2), started(0, start=3, wait=20)],
        "rank 0 waits for all_reduce (cell 3, line 7) before all calls are issued, so backward is "
        "blocked. Do not wait in a hook; wait after all calls have started.",
    ),
    Row(
        IssuedInside("backward"),
        IN_BACKWARD,
        IN_BACKWARD[:3],
        "rank 1 never calls all_reduce.",
    ),
    Row(
        IssuedInside("backward", applies=lambda case: case.world_size == 2),
        IN_BACKWARD,
        [span(0, "backward", start=5), started(0, wait=20)],
        "rank 0 calls all_reduce (cell 3, line 7) before backward. Issue each call from a hook, as soon as "
        "its gradients are ready. One gradient can make several calls ready.",
    ),
    Row(
        SpanInFlight("work"),
        MEANWHILE,
        [isend(wait=6), span(0, "work", 2, 5), span(1, "work", 2, 5), irecv(start=4, wait=6)],
        "rank 1 issues its irecv from rank 0 only after work() began; issue it before.",
    ),
    Row(
        SpanInFlight("work"),
        MEANWHILE,
        [isend(wait=3), span(0, "work", 2, 5)],
        "rank 0 waits for its isend to rank 1 before work() is done; wait after it.",
    ),
    Row(
        SpanInFlight("work"),
        MEANWHILE,
        [span(0, "work", 2, 5), span(0, "work", 6, 7)],
        "rank 0 calls work() 2 times; expected: once.",
    ),
    # --- a rule by the author of an exercise ----------------------------------------------------
    Row(
        Predicate(lambda trace, case: "" if trace.calls else "nobody says anything.", "they talk"),
        [send()],
        [span(0)],
        "nobody says anything.",
    ),
]


def trace_of(events: list[Event]) -> Trace:
    """Number each rank's calls in the order of listing."""
    by_rank = sorted(events, key=lambda event: event.rank)
    return Trace(2, tuple(replace(event, seq=seq) for seq, event in enumerate(by_rank)))


@pytest.mark.parametrize(
    "row", TABLE, ids=lambda row: f"{type(row.rule).__name__}: {row.says[:40]}"
)
def test_rule_reports_only_breaking_trace(row: Row) -> None:
    assert row.rule.problem(trace_of(row.keeps), CASE) == ""
    assert row.rule.problem(trace_of(row.breaks), CASE) == row.says


def test_every_rule_has_an_example() -> None:
    kinds = {
        kind
        for module in (rules, rules_collectives, rules_spans, rules_transfers)
        for kind in vars(module).values()
        if inspect.isclass(kind) and issubclass(kind, (FirstProblem, Predicate))
    }
    assert kinds - {FirstProblem} == {type(row.rule) for row in TABLE}


@pytest.mark.parametrize("row", TABLE, ids=lambda row: type(row.rule).__name__)
def test_rule_text_omits_final_period(row: Row) -> None:
    assert row.rule.text and not row.rule.text.endswith(".")


def test_unreached_phase_breaks_no_rule() -> None:
    assert Calls(phase="forward", exactly=1).problem(trace_of([span(0, "backward")]), CASE) == ""


def test_inapplicable_rule_is_never_broken() -> None:
    rule = IssuedInside("backward", applies=lambda case: False)
    assert rule.problem(trace_of([]), CASE) == ""
