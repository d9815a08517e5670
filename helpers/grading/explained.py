"""Do the recorded calls explain the bytes that were counted from outside? If not: where to look.

`records` asks `mismatch` for each run in a sandbox that can be looked into (`traffic`). It is not a
verdict: gloo's framing and algorithms are those of torch 2.13, which tests compare with real ranks. What it
cannot distinguish: calls that move the same bytes between the same ranks, as gloo's own ring and one
written by hand; what goes by files, memory or Unix sockets behind a show of the right calls; and a few
kilobytes over connections of one's own, where the record holds a made-up group that explains them.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass, field

from helpers.ranks.run import Run
from helpers.trace.events import Collective, Event, Trace
from helpers.views.plain import plural

LOOK = "traffic does not match: look. "
# Bytes of gloo's own: with each message, back to its sender, and from one end of a connection.
_HEADER, _NOTICE, _HELLO = 96, 48, 8
# gloo cuts what a collective moves into pieces of at most so much.
_SEGMENT = 1 << 20


@dataclass
class _Bounds:
    """What the recorded calls can have moved: between two ranks by messages, and by all calls together."""

    least: dict[tuple[int, int], int] = field(default_factory=lambda: defaultdict(int))
    most: dict[tuple[int, int], int] = field(default_factory=lambda: defaultdict(int))
    least_of_all: int = 0
    most_of_all: int = 0
    only_messages: bool = True


def mismatch(run: Run) -> str:
    """Say in one line what the trace of a run does not explain, or "" if it explains all."""
    traffic = run.traffic
    if traffic is None:
        return ""
    if run.trace.dropped:
        return (
            f"{LOOK}{run.trace.dropped:,} records of calls were too many, or none that torch makes."
        )
    if traffic.problem:
        return f"{LOOK}What its ranks sent could not be read from outside: {traffic.problem}."
    if traffic.datagrams:
        return f"{LOOK}{traffic.datagrams:,} datagrams were sent: no call of torch sends any."
    closed = traffic.opened - traffic.open
    if closed > 0:
        return (
            f"{LOOK}{closed} of {traffic.opened} connections were closed before the ranks had answered, "
            "or led to none of them (destroy_process_group closes some, too): what they carried is "
            "not known."
        )
    expected = sum(len(group) * (len(group) - 1) // 2 for group in run.trace.groups)
    if traffic.open != expected:
        return (
            f"{LOOK}{traffic.open} connections are open between the ranks; gloo makes {expected} for their "
            f"{plural(len(run.trace.groups), 'group')}, one for each pair of ranks."
        )
    bounds = _bounds(run.trace, traffic.open)
    for pair, sent in sorted(traffic.sent.items()):
        if sent < bounds.least[pair]:
            return LOOK + _of_pair(pair, sent, f"at least {bounds.least[pair]:,}")
        if bounds.only_messages and sent > bounds.most[pair] + _HELLO * traffic.open:
            return LOOK + _of_pair(pair, sent, f"at most {bounds.most[pair]:,}")
    for pair, least in bounds.least.items():
        if pair not in traffic.sent:
            return LOOK + _of_pair(pair, 0, f"at least {least:,}")
    total = sum(traffic.sent.values())
    if not bounds.least_of_all <= total <= bounds.most_of_all:
        return (
            f"{LOOK}All ranks together have sent {total:,} bytes; the recorded calls explain "
            f"{bounds.least_of_all:,} to {bounds.most_of_all:,}."
        )
    return ""


def _of_pair(pair: tuple[int, int], sent: int, explained: str) -> str:
    return (
        f"Rank {pair[0]} has sent {sent:,} bytes to rank {pair[1]}; its calls explain {explained}."
    )


def _bounds(trace: Trace, connections: int) -> _Bounds:
    bounds = _Bounds(most_of_all=_HELLO * connections)
    receives: Counter[tuple[int, tuple[int, ...]]] = Counter()
    sends: Counter[tuple[int, int]] = Counter()
    taken: Counter[tuple[int, int]] = Counter()
    for event in trace:
        if event.op == "send" and event.peer is not None:
            _add_message(bounds, event, sends)
        elif event.op == "recv":
            receives[event.rank, event.group_ranks] += 1
            if event.peer is not None and not event.error:
                taken[event.peer, event.rank] += event.nbytes + _HEADER
    for pair, size in sends.items():
        # what both ends have asked for was moved, whether or not they wait for the end of it
        bounds.least[pair] = min(size, taken[pair])
        bounds.least_of_all += bounds.least[pair]
    for (rank, group), count in receives.items():
        for peer in set(group or range(trace.world_size)) - {rank}:
            # a receive from any source tells all that it is ready
            bounds.most[rank, peer] += count * _NOTICE
            bounds.most_of_all += count * _NOTICE
    for collective in trace.collectives():
        least, most = _moved(collective)
        bounds.only_messages = False
        bounds.most_of_all += most
        if collective.complete and all(event.finished for event in collective.calls):
            bounds.least_of_all += least
    return bounds


def _add_message(bounds: _Bounds, event: Event, sends: Counter[tuple[int, int]]) -> None:
    assert event.peer is not None
    pair, size = (event.rank, event.peer), event.nbytes + _HEADER
    bounds.most[pair] += size
    bounds.most_of_all += size
    if not event.error:
        sends[pair] += size


def _moved(collective: Collective) -> tuple[int, int]:
    """Return the least and the most bytes that one collective moves in all, framing included."""
    n = len(collective.group_ranks)
    if n < 2:
        return 0, 0
    sizes = [event.nbytes for event in collective.calls]
    small, large = min(sizes), max(sizes)
    tensors = max(1, *(len(event.shapes) for event in collective.calls))
    framing = _HEADER + _NOTICE
    tree, direct = (n - 1) * framing, n * (n - 1) * framing
    ring = (4 * n * (n - 1) + 2 * n * (large // _SEGMENT)) * framing
    least, most = {
        "barrier": (0, direct + 4 * n * (n - 1)),  # monitored_barrier sends a word each way
        "broadcast": ((n - 1) * small, (n - 1) * large + tree * tensors),
        "gather": ((n - 1) * small, (n - 1) * large + tree),
        "scatter": (0, large + tree),
        "all_to_all": (0, sum(sizes) + direct),
        "all_gather": (n * (n - 1) * small, n * (n - 1) * large + ring * tensors),
        "all_reduce": (2 * (n - 1) * small, 2 * (n - 1) * large + ring * tensors),
        "reduce": ((n - 1) * small, 2 * (n - 1) * large + ring),
        # gloo reduces all of it on every rank, and lets each keep its part
        "reduce_scatter": (0, 2 * (n - 1) * large + ring * tensors),
    }[collective.op]
    return least, most
