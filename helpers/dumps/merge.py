"""Merge the dumps of all ranks into a trace, and describe each rank's position.

Collectives belong together if their group and number are the same. A trace pairs calls by their order, so
calls with smaller numbers than the first that is available from all ranks are left out.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from helpers.dumps.entries import OPS, Dump, Entry
from helpers.dumps.frames import find_call_site, find_function
from helpers.dumps.stacks import Stack
from helpers.trace.events import Event, Trace
from helpers.trace.rank_state import RankState

MAX_RANKS = 65_536
MAX_COMPARED = 300
"""Maximum number of a group's collectives to compare before the first that some rank has not called."""
_MAX_EVENTS = 40_000
_MIN_COMPARED = 5
_BYTES = {
    **dict.fromkeys(("Double", "Long", "ComplexFloat", "UInt64"), 8),
    **dict.fromkeys(("Float", "Int", "UInt32"), 4),
    **dict.fromkeys(("Half", "BFloat16", "Short", "UInt16"), 2),
    "ComplexDouble": 16,
}
_DTYPES = {
    **{"Double": "float64", "Float": "float32", "Half": "float16", "BFloat16": "bfloat16"},
    **{"Long": "int64", "Int": "int32", "Short": "int16", "Char": "int8", "Byte": "uint8"},
    **{"Bool": "bool", "ComplexFloat": "complex64", "ComplexDouble": "complex128"},
}
Key = tuple[int, int]
"""A call: its rank, and its position among the rank's calls."""


@dataclass(frozen=True)
class Merged:
    """The combined dumps of a job.

    trace: the compared calls. states: the state of each rank. entries: the recorder's entry for each call of
    the trace. dumps, stacks: the dump and the stack of each rank.
    """

    trace: Trace
    states: tuple[RankState, ...]
    entries: Mapping[Key, Entry]
    dumps: Mapping[int, Dump]
    stacks: Mapping[int, Stack]

    @cached_property
    def silent_ranks(self) -> tuple[int, ...]:
        """The ranks without a dump."""
        return tuple(rank for rank in self.trace.ranks if rank not in self.dumps)

    def entry(self, event: Event) -> Entry:
        return self.entries[event.rank, event.seq]

    @cached_property
    def last_calls(self) -> dict[int, Event]:
        """{rank: its last call} for each rank that has made a call."""
        return {event.rank: event for event in self.trace}

    def calls_of_group(self, event: Event, rank: int) -> list[Event]:
        """Return the collectives made by a rank on the group of a call."""
        return [
            call
            for call in self.trace.of(rank)
            if call.is_collective
            and (call.group, call.group_ranks) == (event.group, event.group_ranks)
        ]


def merge_dumps(dumps: Mapping[int, Dump], stacks: Mapping[int, Stack]) -> Merged:
    """Merge dumps and stacks, both by rank."""
    world = _find_world(dumps, stacks)
    members = _find_members(dumps, world)
    entries: dict[Key, Entry] = {}
    events: list[Event] = []
    starts = _first_numbers(dumps, members)
    for rank in sorted(dumps):
        kept = [e for e in dumps[rank].entries if _is_compared(e, dumps[rank], starts, members)]
        kept.sort(key=lambda e: e.seq if e.op not in {"send", "recv"} else -1)
        kept.sort(key=lambda e: e.created_ns)
        for number, entry in enumerate(kept):
            entries[rank, number] = entry
            following = kept[number + 1].created_ns if number + 1 < len(kept) else 0
            group_ranks = members[rank, entry.group]
            events.append(_make_event(entry, rank, number, group_ranks, following))
    trace = Trace(world, tuple(_with_roots(events, entries)))
    pending: dict[int, list[Event]] = defaultdict(list)
    for event in trace:
        if not event.finished:
            pending[event.rank].append(event)
    states = tuple(_make_state(rank, tuple(pending[rank]), stacks) for rank in range(world))
    return Merged(trace, states, entries, dumps, stacks)


def _find_world(dumps: Mapping[int, Dump], stacks: Mapping[int, Stack]) -> int:
    """Return the number of ranks, as far as known from the files."""
    named = {*dumps, *stacks}
    for dump in dumps.values():
        named.update(*dump.groups.values())
    return min(max(named, default=-1) + 1, MAX_RANKS)


def _find_members(dumps: Mapping[int, Dump], world: int) -> dict[tuple[int, str], tuple[int, ...]]:
    """Return {(rank, group name): members} for the groups used by each rank.

    gloo does not write the names of groups, so every group other than the default one is assumed to consist
    of the ranks that have used it.
    """
    users: dict[str, set[int]] = defaultdict(set)
    used: dict[tuple[int, str], str] = {}
    for rank, dump in dumps.items():
        for entry in dump.entries:
            users[entry.group].add(rank)
            used[rank, entry.group] = entry.group_name
    members = {}
    for (rank, group), name in used.items():
        known = dumps[rank].groups.get(group, ())
        if rank in known:
            members[rank, group] = tuple(member for member in known if member < world)
        elif name == "default_pg" or group in {"", "0"}:
            members[rank, group] = tuple(range(world))
        else:
            members[rank, group] = tuple(sorted(users[group]))
    return members


GroupKey = tuple[str, tuple[int, ...]]


def _first_numbers(
    dumps: Mapping[int, Dump], members: Mapping[tuple[int, str], tuple[int, ...]]
) -> dict[GroupKey, int]:
    """Return the number of the first collective to compare in each group."""
    numbers: dict[GroupKey, dict[int, list[int]]] = defaultdict(lambda: defaultdict(list))
    for rank, dump in dumps.items():
        for entry in dump.entries:
            if not _is_message(entry):
                key = entry.group, members[rank, entry.group]
                numbers[key][rank].append(entry.seq)
    count = max(_MIN_COMPARED, min(MAX_COMPARED, _MAX_EVENTS // max(1, len(dumps))))
    return {
        key: max(
            max(min(seqs) for seqs in by_rank.values()),
            min(max(seqs) for seqs in by_rank.values()) - count,
        )
        for key, by_rank in numbers.items()
    }


def _is_message(entry: Entry) -> bool:
    return OPS[entry.op] in {"send", "recv"}


def _is_compared(
    entry: Entry,
    dump: Dump,
    starts: Mapping[GroupKey, int],
    members: Mapping[tuple[int, str], tuple[int, ...]],
) -> bool:
    if _is_message(entry):
        # If the oldest messages are missing, finished messages cannot be paired.
        return not (dump.is_cut and entry.finished) and min(entry.src, entry.dst) >= 0
    group_ranks = members[dump.rank, entry.group]
    start = starts[entry.group, group_ranks]
    return entry.seq >= start or not entry.finished


def _make_event(
    entry: Entry, rank: int, number: int, group_ranks: tuple[int, ...], following_ns: int
) -> Event:
    op, site = OPS[entry.op], find_call_site(entry.frames)
    shapes = entry.outputs if op == "recv" else entry.inputs
    sizes = [math.prod(shape) for shape in shapes]
    peer = None
    if op in {"send", "recv"}:
        position = entry.dst if op == "send" else entry.src
        peer = group_ranks[position] if position < len(group_ranks) else position
    gives: tuple[int, ...] = ()
    takes: tuple[int, ...] = ()
    received = [math.prod(shape) for shape in entry.outputs]
    if op == "all_to_all" and len(sizes) == len(received) == len(group_ranks) > 1:
        gives, takes = tuple(sizes), tuple(received)
    elif op == "scatter":
        takes = tuple(received[:1])
        gives = tuple(sizes) if len(sizes) == len(group_ranks) else ()
    end = entry.completed_ns or max(following_ns - 1, entry.created_ns + 1)
    return Event(
        rank=rank,
        seq=number,
        op=op,
        call=site.call or op,
        group=entry.group,
        group_ranks=group_ranks,
        peer=peer,
        nbytes=sum(sizes) * _BYTES.get(entry.dtype, 1),
        dtype=_DTYPES.get(entry.dtype, entry.dtype),
        shapes=shapes,
        gives=gives,
        takes=takes,
        by=site.by,
        start_ns=entry.created_ns,
        wait_ns=entry.created_ns,
        end_ns=max(end, entry.created_ns) if entry.finished else None,
        where=site.place,
        callers=site.callers,
    )


def _with_roots(events: Sequence[Event], entries: Mapping[Key, Entry]) -> Iterator[Event]:
    """Yield the events with the roots inferred from their tensors.

    The recorder does not write roots. However, in a gather only the root has outputs, and in a scatter only
    the root has inputs.
    """
    roots: dict[tuple[object, ...], int] = {}

    def key(event: Event) -> tuple[object, ...]:
        return event.op, event.group, event.group_ranks, entries[event.rank, event.seq].seq

    def is_root(event: Event) -> bool:
        entry = entries[event.rank, event.seq]
        full = entry.outputs if event.op == "gather" else entry.inputs
        return event.op in {"gather", "scatter"} and bool(full)

    for event in events:
        if is_root(event):
            roots.setdefault(key(event), event.rank)
    for event in events:
        root = event.rank if is_root(event) else roots.get(key(event))
        yield event if event.op not in {"gather", "scatter"} else replace(event, root=root)


def _make_state(rank: int, pending: tuple[Event, ...], stacks: Mapping[int, Stack]) -> RankState:
    stack = stacks.get(rank, ())
    site = find_call_site(stack)
    return RankState(
        rank,
        "running",
        blocked=pending[0] if pending else None,
        pending=pending,
        inside=find_function(stack),
        at=str(site.place) if site.place else "",
    )
