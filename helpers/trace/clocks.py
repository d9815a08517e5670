"""Put the times of several hosts on one clock, so that in a trace nothing arrives before it was sent.

    Trace with hosts -> _causes (what cannot have ended before what began) -> a shift of each host -> Trace

When a launch begins, the hosts report their clocks. A reported clock is exact only to half of the time
between question and answer. The trace itself shows more: a receive ends after its send has begun, and an
all_reduce ends on each rank after it has begun on all. Each such pair limits how far apart two clocks
can be. All of them together are a system of difference constraints, which the Bellman-Ford algorithm
solves (Cormen et al., "Introduction to Algorithms", section "Difference constraints and shortest
paths").
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import replace

from helpers.trace.events import Collective, Event, Trace

_ALL_NEED_ALL = {"all_gather", "all_reduce", "barrier", "reduce_scatter"}
_ALL_NEED_ROOT = {"broadcast", "scatter"}
_ROOT_NEEDS_ALL = {"gather", "reduce"}


def aligned(trace: Trace) -> Trace:
    """Return the trace with the smallest shifts of hosts for which nothing arrives before it was sent.

    If there are none (clocks drift, or a rank has written false times), calls that still end too early get
    the time at which their data was sent. The trace of one machine is unchanged, because it has one clock.
    """
    if len(trace.by_host) < 2:
        return trace
    causes = list(_causes(trace))
    shifts = _shifts(trace, causes)
    at = [shifts[host] for host in trace.hosts]
    ends: dict[int, int] = {}
    for before, after in causes:
        earliest = max(event.start_ns + at[event.rank] for event in before)
        for event in after:
            assert event.end_ns is not None
            ends[id(event)] = max(ends.get(id(event), event.end_ns + at[event.rank]), earliest)
    return replace(trace, events=tuple(_moved(e, at[e.rank], ends.get(id(e))) for e in trace))


def _shifts(
    trace: Trace, causes: Sequence[tuple[Sequence[Event], Sequence[Event]]]
) -> dict[str, int]:
    """Return the number of nanoseconds by which each host's times must be moved."""
    # (from, to) -> by how much the times of `from` may be moved to later, if those of `to` stay
    room: dict[tuple[str, str], int] = {}
    for before, after in causes:
        for event in after:
            assert event.end_ns is not None
            to = trace.hosts[event.rank]
            for other in before:
                pair = trace.hosts[other.rank], to
                if pair[0] != to:
                    room[pair] = min(room.get(pair, 1 << 62), event.end_ns - other.start_ns)
    shifts = dict.fromkeys(trace.hosts, 0)
    for _ in shifts:
        for (first, then), most in room.items():
            shifts[first] = min(shifts[first], shifts[then] + most)
    return shifts


def _causes(trace: Trace) -> Iterator[tuple[list[Event], list[Event]]]:
    """Yield pairs of lists: no call of the second list can end before each call of the first has begun."""
    for message in trace.messages():
        recv = message.recv
        if recv is not None and recv.finished and trace.between_hosts((message.src, recv.rank)):
            yield [message.send], [recv]
    for collective in trace.collectives():
        if collective.complete and trace.between_hosts(collective.group_ranks):
            yield from _causes_in(trace, collective)


def _causes_in(trace: Trace, collective: Collective) -> Iterator[tuple[list[Event], list[Event]]]:
    calls, op = list(collective.calls), collective.op
    # If there is nothing to send, backends may not wait for other ranks.
    moves = op == "barrier" or any(call.nbytes for call in calls)
    if not moves or any(call.op != op for call in calls):
        return
    root = [call for call in calls if call.rank == call.root]
    if op in _ALL_NEED_ALL:
        before, after = calls, calls
    elif op in _ALL_NEED_ROOT:
        before, after = root, calls
    elif op in _ROOT_NEEDS_ALL:
        before, after = calls, root
    else:  # In an all_to_all, a rank may have nothing for a certain other rank.
        return
    # For each host, only the last call to begin and the first to end matter.
    last: dict[str, Event] = {}
    for call in before:
        host = trace.hosts[call.rank]
        if host not in last or call.start_ns > last[host].start_ns:
            last[host] = call
    ended: dict[str, list[Event]] = defaultdict(list)
    for call in after:
        if call.finished:
            ended[trace.hosts[call.rank]].append(call)
    for host, effects in ended.items():
        others = [call for at, call in last.items() if at != host]
        if others:
            yield others, effects


def _moved(event: Event, by: int, end_ns: int | None) -> Event:
    if end_ns is None and event.end_ns is not None:
        end_ns = event.end_ns + by
    wait_ns = None if event.wait_ns is None else event.wait_ns + by
    return replace(event, start_ns=event.start_ns + by, wait_ns=wait_ns, end_ns=end_ns)
