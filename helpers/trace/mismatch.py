"""What does not fit together between the calls of different ranks: op, root, shape, dtype, size."""

from __future__ import annotations

from helpers.trace.events import Collective, Event, Trace


def problem_of(collective: Collective) -> str | None:
    """Name what does not fit between the calls of one collective: "op", "shape", "dtype", "root"."""
    calls = collective.calls
    if len({call.op for call in calls}) > 1:
        return "op"
    if len({call.root for call in calls}) > 1:
        return "root"
    op = calls[0].op
    # scatter and all_to_all are left out: there ranks rightly hand in different amounts
    given = [call for call in calls if call.shapes]
    if op in {"all_reduce", "reduce", "broadcast", "all_gather", "gather", "reduce_scatter"}:
        # By bytes, not by shape: a (2, 3) and a (6,) do not disturb each other.
        if len({call.nbytes for call in given}) > 1:
            return "shape"
        if len({call.dtype for call in given}) > 1:
            return "dtype"
    return None


def mismatch_in(trace: Trace) -> str:
    """Say in one sentence which collective's calls do not fit, or "" if all fit.

    A rank that gloo aborted leaves no word itself; its trace and its peers' say why.
    """
    for collective in trace.collectives():
        problem = problem_of(collective)
        if problem in {"shape", "dtype", "op"}:
            return unlike(collective, problem)
    for message in trace.messages():
        recv = message.recv
        # gloo moves bytes: with the same number of them another dtype raises no error and gives wrong values
        if recv is not None and message.send.dtype != recv.dtype and not recv.finished:
            return (
                f"rank {message.src} sends {message.send.dtype}{at(message.send)}, but rank "
                f"{message.dst} receives into {recv.dtype}{at(recv)}: the dtypes must be the same."
            )
        if recv is not None and message.send.nbytes > recv.nbytes:
            return (
                f"rank {message.src} sends {_size(message.send)}{at(message.send)}, "
                f"but rank {message.dst} receives into {_size(recv)}{at(recv)}: "
                "the buffer must be at least as large as the message."
            )
    return ""


def unlike(collective: Collective, problem: str) -> str:
    """Say which two calls of a collective differ, and how."""
    first = collective.calls[0]
    other = next(c for c in collective.calls if key_of(c, problem) != key_of(first, problem))
    return (
        f"rank {first.rank} calls {_described(first, problem)}{at(first)}, while "
        f"rank {other.rank} calls {_described(other, problem)}{at(other)}."
    )


def key_of(event: Event, problem: str) -> object:
    """Return the part of a call in which the calls of a collective must agree."""
    return {"op": event.op, "shape": event.nbytes, "dtype": event.dtype, "root": event.root}[
        problem
    ]


def _described(event: Event, problem: str) -> str:
    if problem == "op":
        return event.call
    if problem == "root":
        return f"{event.call} with root {event.root}"
    return f"{event.call} of {_size(event)}"


def _size(event: Event) -> str:
    shape = event.shapes[0] if event.shapes else ()
    return f"{'x'.join(map(str, shape)) or 'one'} {event.dtype}"


def at(event: Event) -> str:
    """Write where a call stands, in brackets, or nothing."""
    return f" ({event.where})" if event.where else ""
