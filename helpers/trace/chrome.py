"""Write traces in Chrome's Trace Event Format for other tools, and read profiles of torch in that format.

    Run.save_trace -> chrome_trace(Trace) -> JSON -> Perfetto, chrome://tracing
    torch.profiler, a file of each rank -> profiled() -> Trace -> timeline, step_lanes

Perfetto requires slices on one thread to nest, but calls in flight overlap. So each rank is a process, and
each of its rows, in which nothing overlaps, is a thread.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from helpers.trace.events import COLLECTIVES, Event, Message, Trace

# Nanoseconds per unit of the format, a microsecond.
_NS_PER_US = 1e3

# Number of the first row of calls, below the rows of spans.
_FIRST_CALL_ROW = 1000

# Prefixes of the labels added to a profile by torch itself.
_TORCH_LABELS = ("DistributedDataParallel.", "Optimizer.", "ProfilerStep#")


def chrome_trace(trace: Trace) -> dict[str, Any]:
    """Return the trace as Chrome trace JSON: `pid` is the rank, and times start at 0 with the first event.

    A call is a complete event ("X"); an unfinished call is a begin without an end ("B"). A message is a flow
    ("s", "f") from its send to its recv.
    """
    origin = min((event.start_ns for event in trace), default=0)
    rows = {
        id(event): row
        for rank in range(trace.world_size)
        for event, row in _assign_rows(trace, rank)
    }
    slices = [_slice_record(event, rows[id(event)], origin) for event in trace]
    flows = [
        flow
        for number, message in enumerate(trace.messages())
        for flow in _flow_records(number, message, rows, origin)
    ]
    return {
        "displayTimeUnit": "ms",
        "otherData": {"world_size": str(trace.world_size), "not recorded": str(trace.dropped)},
        "traceEvents": [*_track_names(trace.world_size, rows, trace), *slices, *flows],
    }


def _assign_rows(trace: Trace, rank: int) -> Iterator[tuple[Event, int]]:
    """Yield each event of a rank with its row: the first row that is free when the event begins."""
    # Perfetto draws overlapping slices wrongly if they are on one thread, so put them into separate rows.
    for first, spans in ((0, True), (_FIRST_CALL_ROW, False)):
        ends: list[float] = []
        for event in sorted(trace.of(rank), key=lambda e: (e.start_ns, e.seq)):
            if (event.op == "span") is spans:
                row = next((i for i, end in enumerate(ends) if end <= event.start_ns), len(ends))
                ends[row : row + 1] = [float("inf") if event.end_ns is None else _end_ns(event)]
                yield event, first + row


def _end_ns(event: Event) -> int:
    return max(event.start_ns, event.start_ns if event.end_ns is None else event.end_ns)


def _slice_record(event: Event, row: int, origin: int) -> dict[str, Any]:
    record: dict[str, Any] = {
        "ph": "X",
        "name": event.call or event.op,
        "cat": "span" if event.op == "span" else "communication",
        "pid": event.rank,
        "tid": row,
        "ts": (event.start_ns - origin) / _NS_PER_US,
        "dur": (_end_ns(event) - event.start_ns) / _NS_PER_US,
        "args": _arguments(event),
    }
    if event.end_ns is None:
        del record["dur"]
        record["ph"] = "B"
    return record


def _arguments(event: Event) -> dict[str, Any]:
    """Return the details that Perfetto shows when a call is clicked."""
    details: dict[str, Any] = {
        "line": str(event.where) if event.where else "",
        "error": event.error,
    }
    if event.op != "span":
        details |= {
            "op": event.op,
            "group": list(event.group_ranks),
            "peer": event.peer,
            "root": event.root,
            "bytes": event.nbytes,
            "dtype": event.dtype,
            "shapes": [list(shape) for shape in event.shapes],
            "reduce_op": event.reduce_op,
        }
        if event.asynchronous and event.wait_ns is not None:
            details["waited from [us]"] = (event.wait_ns - event.start_ns) / _NS_PER_US
    return {name: value for name, value in details.items() if value not in (None, "", [])}


def _flow_records(
    flow_id: int, message: Message, rows: Mapping[int, int], origin: int
) -> Iterator[dict[str, Any]]:
    """Yield both ends of an arrow. Each lies within a slice, and the second does not precede the first."""
    send, recv = message.send, message.recv
    if recv is None:
        return
    # Use the last nanosecond before the end of a recv, because the slice does not include its end.
    arrives = max(recv.start_ns, _end_ns(recv) - 1)
    for phase, event, time_ns in (
        ("s", send, send.start_ns),
        ("f", recv, max(send.start_ns, arrives)),
    ):
        yield {
            "ph": phase,
            "id": flow_id,
            "name": "message",
            "cat": "message",
            "pid": event.rank,
            "tid": rows[id(event)],
            "ts": (time_ns - origin) / _NS_PER_US,
            **({"bp": "e"} if phase == "f" else {}),
        }


def _track_names(
    world_size: int, rows: Mapping[int, int], trace: Trace
) -> Iterator[dict[str, Any]]:
    for rank in range(world_size):
        host = f" on {trace.hosts[rank]}" if trace.hosts else ""
        yield _metadata("process_name", rank, 0, name=f"rank {rank}{host}")
        yield _metadata("process_sort_index", rank, 0, sort_index=rank)
    for rank, row in sorted({(event.rank, rows[id(event)]) for event in trace}):
        name = "spans" if row < _FIRST_CALL_ROW else "calls"
        yield _metadata("thread_name", rank, row, name=name)
        yield _metadata("thread_sort_index", rank, row, sort_index=row)


def _metadata(kind: str, pid: int, tid: int, **args: Any) -> dict[str, Any]:
    return {"ph": "M", "name": kind, "pid": pid, "tid": tid, "args": args}


def profiled(traces: Sequence[Mapping[str, Any]]) -> Trace:
    """Read the profiles that `torch.profiler` exported on each rank, over gloo and on CPU.

    Labels of `record_function` become spans. gloo's work becomes calls, in the order of their beginnings.
    Operators are left out. Times are taken from the files, which agree if all were written on one machine. As
    in the files, work in flight at the end of the profile ends at this moment.

    Args:
        traces: The JSON of one file for each rank.

    Raises:
        ValueError: The files are not such profiles.
    """
    by_rank = {_rank_of(profile): profile for profile in traces}
    if sorted(by_rank) != list(range(len(traces))):
        raise ValueError(
            f"a profile needs one trace of each rank, starting with rank 0; got "
            f"{len(traces)} of ranks {sorted(by_rank)}."
        )
    found = (
        event
        for rank in range(len(traces))
        for event in _read_profile(by_rank[rank], rank, len(traces))
    )
    return Trace(len(traces), tuple(found))


def _rank_of(profile: Mapping[str, Any]) -> int:
    try:
        return int(profile["distributedInfo"]["rank"])
    except (KeyError, TypeError):
        raise ValueError(
            "this is not a rank's trace by torch.profiler: it has no `distributedInfo`. Export it "
            "before you destroy the process group."
        ) from None


def _read_profile(profile: Mapping[str, Any], rank: int, world_size: int) -> Iterator[Event]:
    base = int(profile.get("baseTimeNanoseconds", 0))
    labels = [
        event
        for event in profile["traceEvents"]
        if event.get("cat") == "user_annotation" and not event["name"].startswith(_TORCH_LABELS)
    ]
    for seq, event in enumerate(sorted(labels, key=lambda e: (e["ts"], -e["dur"]))):
        backend, _, name = event["name"].rpartition(":")
        op = "recv" if name == "recvAnySource" else name
        is_call = backend == "gloo" and op in {*COLLECTIVES, "send", "recv"}
        # As a float, microseconds since boot still resolve nanoseconds, but not after adding the base.
        start = base + round(event["ts"] * _NS_PER_US)
        yield Event(
            rank,
            seq,
            op if is_call else "span",
            name if is_call else event["name"],
            group="world" if is_call else "",
            group_ranks=tuple(range(world_size)) if is_call else (),
            asynchronous=is_call,
            start_ns=start,
            end_ns=start + round(event["dur"] * _NS_PER_US),
        )
