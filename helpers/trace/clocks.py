"""Put the times of several hosts on one clock, so that no message in a trace arrives before it was sent.

    Trace with hosts -> _find_causes (ends that cannot precede certain begins) -> a shift per host -> Trace

When a launch begins, the hosts report their clocks. A reported clock is exact only to within half of the time
between question and answer. The trace itself contains more evidence: a receive ends after its send has begun,
and an all_reduce ends on each rank after it has begun on all of them. Each such pair limits the offset of two
clocks. Together, all pairs are a system of difference constraints, which the Bellman-Ford algorithm solves
(Cormen et al., "Introduction to Algorithms", section "Difference constraints and shortest paths").
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import replace

from helpers.trace.events import Collective, Event, Trace

_ALL_SEND_TO_ALL = {"all_gather", "all_reduce", "barrier", "reduce_scatter"}
_ROOT_SENDS_TO_ALL = {"broadcast", "scatter"}
_ALL_SEND_TO_ROOT = {"gather", "reduce"}


def align_hosts(trace: Trace) -> Trace:
    """Shift the hosts' times as little as possible so that no message arrives before it was sent.

    If clocks drift, or a rank has written false times, there may be no such shifts. Then the end of each call
    that ends too early is moved to the time at which its data was sent. The trace of one machine is
    unchanged, because it has one clock.
    """
    if len(trace.by_host) < 2:
        return trace
    causes = list(_find_causes(trace))
    shifts = _find_shifts(trace, causes)
    rank_shifts = [shifts[host] for host in trace.hosts]
    ends: dict[int, int] = {}
    for causing, caused in causes:
        earliest = max(event.start_ns + rank_shifts[event.rank] for event in causing)
        for event in caused:
            assert event.end_ns is not None
            ends[id(event)] = max(
                ends.get(id(event), event.end_ns + rank_shifts[event.rank]), earliest
            )
    return replace(
        trace,
        events=tuple(
            _shift_event(event, rank_shifts[event.rank], ends.get(id(event))) for event in trace
        ),
    )


def _find_shifts(
    trace: Trace, causes: Sequence[tuple[Sequence[Event], Sequence[Event]]]
) -> dict[str, int]:
    """Return the shift of each host's times, in nanoseconds."""
    # (from, to) -> the maximum shift of `from` to later times, relative to `to`
    max_shifts: dict[tuple[str, str], int] = {}
    for causing, caused in causes:
        for event in caused:
            assert event.end_ns is not None
            host = trace.hosts[event.rank]
            for other in causing:
                pair = trace.hosts[other.rank], host
                if pair[0] != host:
                    max_shifts[pair] = min(
                        max_shifts.get(pair, 1 << 62), event.end_ns - other.start_ns
                    )
    shifts = dict.fromkeys(trace.hosts, 0)
    for _ in shifts:
        for (first, then), most in max_shifts.items():
            shifts[first] = min(shifts[first], shifts[then] + most)
    return shifts


def _find_causes(trace: Trace) -> Iterator[tuple[list[Event], list[Event]]]:
    """Yield pairs of lists: no call of the second list can end before all calls of the first have begun."""
    for message in trace.messages():
        recv = message.recv
        if recv is not None and recv.finished and trace.between_hosts((message.src, recv.rank)):
            yield [message.send], [recv]
    for collective in trace.collectives():
        if collective.complete and trace.between_hosts(collective.group_ranks):
            yield from _collective_causes(trace, collective)


def _collective_causes(
    trace: Trace, collective: Collective
) -> Iterator[tuple[list[Event], list[Event]]]:
    calls, op = list(collective.calls), collective.op
    # If there is no data to send, a backend may not wait for other ranks.
    moves_data = op == "barrier" or any(call.nbytes for call in calls)
    if not moves_data or any(call.op != op for call in calls):
        return
    root = [call for call in calls if call.rank == call.root]
    if op in _ALL_SEND_TO_ALL:
        causing, caused = calls, calls
    elif op in _ROOT_SENDS_TO_ALL:
        causing, caused = root, calls
    elif op in _ALL_SEND_TO_ROOT:
        causing, caused = calls, root
    else:  # In an all_to_all, a rank may send nothing to some of the ranks.
        return
    # For each host, only the last call to begin and the first call to end matter.
    last_to_begin: dict[str, Event] = {}
    for call in causing:
        host = trace.hosts[call.rank]
        if host not in last_to_begin or call.start_ns > last_to_begin[host].start_ns:
            last_to_begin[host] = call
    finished: dict[str, list[Event]] = defaultdict(list)
    for call in caused:
        if call.finished:
            finished[trace.hosts[call.rank]].append(call)
    for host, effects in finished.items():
        others = [call for other_host, call in last_to_begin.items() if other_host != host]
        if others:
            yield others, effects


def _shift_event(event: Event, shift_ns: int, end_ns: int | None) -> Event:
    if end_ns is None and event.end_ns is not None:
        end_ns = event.end_ns + shift_ns
    wait_ns = None if event.wait_ns is None else event.wait_ns + shift_ns
    return replace(event, start_ns=event.start_ns + shift_ns, wait_ns=wait_ns, end_ns=end_ns)
