"""Causes of a hang found in dumps, in addition to those in `helpers/trace/causes.py`.

A dump shows one moment of a job that may have continued. So these texts state what a rank has not done *in
its dump*, but never that the rank cannot do it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Sequence
from math import prod

from helpers.dumps.merge import Merged
from helpers.trace.events import CallWait, Collective, Diagnosis, Event
from helpers.trace.mismatch import at
from helpers.trace.waits import StuckWorld
from helpers.trace.wording import has_or_have, is_or_are, name_group, name_ranks

_MAX_NAMED = 12


def find_unequal_exchange(merged: Merged, world: StuckWorld) -> Diagnosis | None:
    """Find an all_to_all in which the ranks together send more or fewer elements than they expect."""
    for collective in merged.trace.collectives():
        if collective.op != "all_to_all" or not collective.complete or _has_finished(collective):
            continue
        entries = [merged.entry(call) for call in collective.calls]
        sent = sum(prod(shape) for entry in entries for shape in entry.inputs)
        expected = sum(prod(shape) for entry in entries for shape in entry.outputs)
        if sent != expected:
            call = collective.calls[0]
            return world.diagnosis(
                "different_shapes",
                f"The ranks send {sent} elements in {call.call}{at(call)}, but expect {expected}.",
                "Compare the split sizes: input_split_sizes[j] of rank i must equal output_split_sizes[i] "
                "of rank j. The dumps do not contain them.",
                collective.group_ranks,
            )
    return None


def find_silent_rank(merged: Merged, world: StuckWorld) -> Diagnosis | None:
    """Find a rank that has no dump, although others wait for it."""
    for wait in _first_waits(world) if merged.silent_ranks else ():
        silent = [rank for rank in wait.waits_for if rank not in merged.dumps]
        if not silent:
            continue
        waiting = _waiting_ranks(wait, silent, world)
        places = _describe_stacks(silent, merged)
        summary = (
            f"There is no dump of {name_some(silent)}, for which {name_some(waiting)} "
            f"{'waits' if len(waiting) == 1 else 'wait'} in {wait.call}{at(wait.event)}.{places}"
        )
        advice = (
            f"Look first at the log of {name_some(silent)}: a rank that has been killed or has raised an "
            "error writes no dump, and the others wait for it. If the process is alive, `py-spy dump "
            "--pid PID` shows its line."
        )
        return world.diagnosis("no_dump", summary, advice, tuple(silent))
    return None


def find_missing_call(merged: Merged, world: StuckWorld) -> Diagnosis | None:
    """Find a rank that is in no call, and whose dump lacks a collective in which others wait."""
    busy = {wait.rank for wait in world.call_waits}
    for wait in _first_waits(world):
        if not wait.event.is_collective:
            continue
        absent = [rank for rank in wait.waits_for if rank not in busy]
        if not absent:
            continue
        return world.diagnosis(
            "missing_call",
            _describe_missing(wait, absent, merged, world),
            _missing_advice(wait.event, absent, merged),
            tuple(absent),
        )
    return None


def _describe_missing(
    wait: CallWait, absent: Sequence[int], merged: Merged, world: StuckWorld
) -> str:
    event = wait.event
    number = merged.entry(event).seq
    waiting = _waiting_ranks(wait, absent, world)
    group = name_group(event, merged.trace)
    parts = [
        f"{name_some(absent).capitalize()} {has_or_have(absent)} not made collective {number} of {group}: "
        f"{name_some(waiting)} {'waits' if len(waiting) == 1 else 'wait'} in {event.call}{at(event)}."
    ]
    lasts = [(rank, calls[-1]) for rank in absent if (calls := merged.calls_of_group(event, rank))]
    for rank, last in lasts[:3]:
        parts.append(
            f"The last collective of rank {rank} was {last.call}{at(last)}, number {merged.entry(last).seq}."
        )
    return " ".join(parts) + _describe_stacks(absent, merged)


def _waiting_ranks(wait: CallWait, absent: Sequence[int], world: StuckWorld) -> list[int]:
    """Return the ranks that wait for some of the absent ranks in a call on the same group."""
    missing, event = set(absent), wait.event
    return [
        other.rank
        for other in world.call_waits
        if (other.event.group, other.event.group_ranks) == (event.group, event.group_ranks)
        and not missing.isdisjoint(other.waits_for)
    ]


def name_some(ranks: Sequence[int]) -> str:
    """Return the names of ranks, up to a readable number: "ranks 0, 1, 2 and 1,021 more"."""
    if len(ranks) <= _MAX_NAMED:
        return name_ranks(ranks)
    return f"ranks {', '.join(map(str, ranks[: _MAX_NAMED - 1]))} and {len(ranks) - _MAX_NAMED + 1:,} more"


def _missing_advice(event: Event, absent: Sequence[int], merged: Merged) -> str:
    names = name_some(absent)
    if any(rank in merged.stacks for rank in absent):
        return (
            f"Look first at the line of {names} above. All ranks of the group must call {event.call}, "
            "or none."
        )
    if any(_is_repeated(event, rank, merged) for rank in absent):
        return (
            f"{names.capitalize()} made this call in earlier steps. Look for the end of its loop (fewer "
            "batches than the others), a `continue`, a caught exception, or slow work such as saving a "
            "checkpoint."
        )
    return (
        f"All ranks of the group must call {event.call}, or none. Look for a branch around this line that "
        f"{names} {'does' if len(absent) == 1 else 'do'} not take. `py-spy dump --pid PID` on that rank "
        "shows where it is; put the output next to the dumps as rankN.txt."
    )


def _is_repeated(event: Event, rank: int, merged: Merged) -> bool:
    calls = merged.calls_of_group(event, rank)
    return event.where is not None and any(call.where == event.where for call in calls)


def find_passed_message(merged: Merged, world: StuckWorld) -> Diagnosis | None:
    """Find a send or a receive whose peer is already in a collective."""
    in_collective = {wait.rank for wait in world.call_waits if wait.event.is_collective}
    diagnosis = find_lonely_message(merged, world)
    return diagnosis if diagnosis is not None and diagnosis.guilty[1] in in_collective else None


def find_lonely_message(merged: Merged, world: StuckWorld) -> Diagnosis | None:
    """Find a send or a receive whose peer has not called the counterpart."""
    busy = {wait.rank: wait for wait in world.call_waits}
    paired = {
        (event.rank, event.seq)
        for message in merged.trace.messages()
        if message.recv is not None
        for event in (message.send, message.recv)
    }
    for wait in _first_waits(world):
        event = wait.event
        if event.op not in {"send", "recv"} or event.peer is None:
            continue
        if (event.rank, event.seq) in paired:
            continue
        peer, counterpart = event.peer, "recv" if event.op == "send" else "send"
        direction = "to" if event.op == "send" else "from"
        summary = (
            f"Rank {event.rank} waits in {event.call} {direction} rank {peer}{at(event)}, but rank {peer} "
            f"has not called the matching {counterpart}."
        )
        if peer in busy:
            other = busy[peer]
            summary += f" Rank {peer} waits in {other.call}{at(other.event)}."
        summary += _describe_stacks([peer], merged)
        return world.diagnosis(
            "unmatched",
            summary,
            f"Compare both ranks' lines: each {event.op} needs a {counterpart} of the same group, in the "
            "same order. Dumps do not contain tags.",
            (event.rank, peer),
        )
    return None


def find_unfinished_call(merged: Merged, world: StuckWorld) -> Diagnosis | None:
    """Find a collective that all members have called, but that not all of them have finished."""
    for collective in merged.trace.collectives():
        stuck = [call for call in collective.calls if not call.finished]
        if not stuck or not collective.complete:
            continue
        states: dict[str, list[int]] = defaultdict(list)
        for call in collective.calls:
            states["completed" if call.finished else merged.entry(call).state].append(call.rank)
        call = stuck[0]
        where = f"{call.call}{at(call)}, collective {merged.entry(call).seq} of "
        where += name_group(call, merged.trace)
        if "completed" in states:
            late = [other.rank for other in stuck]
            return world.diagnosis(
                "partly_completed",
                f"All members have called {where}. The call has completed on "
                f"{name_some(states['completed'])}, but not on {name_some(late)}.",
                f"The calls match. Look at the machine, the GPU and the network of {name_some(late)}, and "
                "at an error in its log. If the job is running, take another dump: the call might "
                "have finished in the meantime.",
                tuple(late),
            )
        if {"started", "scheduled"} <= states.keys():
            late = states["scheduled"]
            return world.diagnosis(
                "not_started",
                f"All members have called {where}. The call has started on {name_some(states['started'])}, "
                f"but {name_some(late)} {has_or_have(late)} only scheduled it.",
                f"The GPU of {name_some(late)} has not reached the call: an earlier kernel, or a call of "
                "another group on the same stream, keeps it busy. Look at the call before it, and at the "
                "order in which groups are used.",
                tuple(late),
            )
        return world.diagnosis(
            "same_call",
            f"All members have called {where}, with the same sizes and dtypes, and none has finished it.",
            "The dumps show no difference. They do not contain roots (`src`, `dst`) and ops (SUM, AVG): "
            "compare these first. Otherwise look at the network (`NCCL_DEBUG=INFO`), or, if the job is "
            "running, take another dump: it might not be a hang.",
        )
    return None


def find_gloo_messages(merged: Merged, world: StuckWorld) -> Diagnosis | None:
    """Find ranks whose stacks show a send or a receive, which is not recorded with gloo."""
    names = {"send", "recv", "wait", "barrier", "new_group", "init_process_group"}
    inside = [state for state in merged.states if state.inside in names and not state.pending]
    if not inside:
        return None
    state = inside[0]
    return world.diagnosis(
        "stuck",
        f"No collective is unfinished. According to its stack, rank {state.rank} is in {state.inside}"
        + (f" ({state.at})." if state.at else "."),
        "gloo does not record sends and receives. Compare the stacks of all ranks: each send needs its recv.",
        (state.rank,),
    )


def _first_waits(world: StuckWorld) -> list[CallWait]:
    """Return the waits for other ranks, earliest call first."""
    waits = [wait for wait in world.call_waits if wait.waits_for]
    return sorted(waits, key=lambda wait: wait.event.start_ns)


def _has_finished(collective: Collective) -> bool:
    return all(call.finished for call in collective.calls)


def _describe_stacks(ranks: Collection[int], merged: Merged) -> str:
    """Return further sentences on the ranks' positions, according to their stacks."""
    text = ""
    for rank in list(ranks)[:3]:
        state = merged.states[rank]
        if rank in merged.stacks and (state.at or state.inside):
            doing = f"in {state.inside}" if state.inside else "in its own code"
            text += f" According to its stack, rank {rank} {is_or_are([rank])} {doing}"
            text += f" at {state.at}." if state.at else "."
    return text
