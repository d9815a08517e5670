"""Explain why no rank can continue: which rank waits for which, and which calls do not match.

The detector in `helpers/ranks/watch.py` decides from outside *whether* a world is deadlocked. This module is
pure: it takes states and a trace, and returns a `Diagnosis`.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from helpers.trace.events import Diagnosis, Event, Trace, Wait
from helpers.trace.mismatch import (
    JOIN,
    Difference,
    at,
    comparison_key,
    first_difference,
    problem_of,
)

FINISHED = frozenset({"returned", "failed", "died"})


@dataclass(frozen=True, slots=True)
class RankState:
    """What is known of a rank from outside.

    Attributes:
        state: "running", "returned", "failed" or "died".
        blocked: The call that it waits for, if any.
        pending: All its unfinished calls.
        inside: The torch function that its main thread is in; "" if that is in the learner's own code.
        at: The learner's line.
        keys: The keys of a store that it waits for.
        needs: The ranks that must come to the rendezvous that it is in; empty for the whole world.
        named: The members that it passes for a new group.
        lockers: The ranks that hold a file lock that it waits for.
        others: Name and line of its other threads that are in the learner's code.
        child: A description of the call that a forked child process makes on one of the rank's groups.
    """

    rank: int
    state: str
    blocked: Event | None = None
    pending: tuple[Event, ...] = ()
    inside: str = ""
    at: str = ""
    keys: tuple[str, ...] = ()
    needs: tuple[int, ...] = ()
    named: tuple[int, ...] = ()
    lockers: tuple[int, ...] = ()
    others: tuple[tuple[str, str], ...] = ()
    child: str = ""

    @property
    def ended(self) -> bool:
        return self.state in FINISHED


_IN_OWN_CODE = (
    "Look at the line of each rank for a lock that is never released, a queue that stays empty, or a "
    "thread that never ends."
)


def diagnose(states: Sequence[RankState], trace: Trace) -> Diagnosis:
    """Explain a world in which no rank can continue. states: one for each rank, in order."""
    waits = tuple(_wait_of(state, states, trace) for state in states)
    difference, last = first_difference(trace), _last_wait(states, trace, waits)
    if difference is not None:
        return _different_calls(difference, trace, waits, last)
    if last is not None:
        return last
    setting_up = {state.inside for state in states} & {"init_process_group", "new_group"}
    if setting_up:
        calls = " and ".join(sorted(setting_up))
        return Diagnosis(
            "stuck",
            f"Every rank waits in {calls} for ranks that never make this call.",
            "world_size must be the number of ranks that call init_process_group."
            if "init_process_group" in setting_up
            else _NEW_GROUP,
            waits,
        )
    if not any(wait.event for wait in waits) and not any(state.inside for state in states):
        return Diagnosis(
            "stuck",
            "All ranks are blocked: each rank waits in its own code, and no thread can unblock it.",
            _IN_OWN_CODE,
            waits,
        )
    return Diagnosis(
        "stuck",
        "All ranks are blocked, and their calls do not show why.",
        "Compare the calls of the ranks: each call must have its counterpart.",
        waits,
    )


def can_complete(states: Sequence[RankState], trace: Trace) -> bool:
    """Return whether a pending call has all its counterparts, so that the world may still continue."""
    for collective in trace.collectives():
        open_calls = [call for call in collective.calls if not call.finished]
        # All members have made the call, but gloo may not have notified all of them yet.
        fits = problem_of(collective) in {None, "reduce_op"}  # gloo does not send the reduction
        if open_calls and collective.complete and fits:
            return True
    blocked = {(s.rank, s.blocked.seq) for s in states if s.blocked is not None}
    from_any = [e for e in trace if e.op == "recv" and e.peer is None and not e.finished]
    for message in trace.messages():
        send, recv = message.send, message.recv
        if recv is None:  # A receive from any source knows its sender only when it has finished.
            takers = [
                e for e in from_any if (e.rank, e.group, e.tag) == (send.peer, send.group, send.tag)
            ]
            if takers and not blocked.isdisjoint((e.rank, e.seq) for e in (send, *takers)):
                return True
        elif not (send.finished and recv.finished) and not blocked.isdisjoint(
            {(send.rank, send.seq), (recv.rank, recv.seq)}
        ):
            return True
    return False


def _wait_of(state: RankState, states: Sequence[RankState], trace: Trace) -> Wait:
    if state.ended:
        words = {"returned": "has returned", "failed": "has failed", "died": "has died"}
        return Wait(state.rank, words[state.state])
    # A rank in gloo's wait() is not in the call itself, so take the last call that it started.
    event = state.blocked or (state.pending[-1] if state.pending and state.inside else None)
    if event is None:
        where = f" at {state.at}" if state.at else ""
        inside = f"in {state.inside}" if state.inside else "in its own code"
        if state.keys:
            inside += f" for {_keys(state.keys)}"
        if state.lockers:
            held = f"waits for a file lock of {_ranks(list(state.lockers))}{where}"
            return Wait(state.rank, held, None, state.lockers)
        threads = "".join(f"; its thread {name!r} at {line}" for name, line in state.others)
        child = (
            f"; its {state.child}, but a forked process has none of the rank's connections"
            if state.child
            else ""
        )
        return Wait(state.rank, inside + where + threads + child)
    return Wait(state.rank, "blocked", event, _awaited(event, trace))


def _awaited(event: Event, trace: Trace) -> tuple[int, ...]:
    """Return the ranks that must act before this call can finish."""
    if event.op in {"send", "recv"}:
        if event.peer is not None:
            return (event.peer,)
        return tuple(rank for rank in event.group_ranks if rank != event.rank)
    for collective in trace.collectives():
        if any(call.seq == event.seq and call.rank == event.rank for call in collective.calls):
            here = {call.rank for call in collective.calls if call.op == event.op}
            return tuple(rank for rank in collective.group_ranks if rank not in here)
    return ()


Waits = tuple[Wait, ...]


def _last_wait(states: Sequence[RankState], trace: Trace, waits: Waits) -> Diagnosis | None:
    """Explain what ranks wait for now, even if their earlier calls differ."""
    # The order matters: causes that are certain come before calls that only lack a counterpart, and each
    # cause comes before the cycles that follow from it.
    for explain in (
        _crosswise,
        _skipped_backward,
        _never_waited,
        _missing_key,
        _file_lock,
        _making_groups,
        _diagnose_exited_rank,
        _diagnose_tag_mismatch,
        _diagnose_wrong_peer,
        _cycle,
        _diagnose_blocked_outside_torch,
        _unmatched,
    ):
        found = explain(states, trace, waits)
        if found is not None:
            return found
    return None


def _different_calls(
    difference: Difference, trace: Trace, waits: Waits, last: Diagnosis | None
) -> Diagnosis:
    """Describe the first calls that differ. If they have finished, `last` explains the present waits."""
    problem, members = difference.problem, difference.collective.group_ranks
    tensors = problem in {"shape", "dtype", "splits"}
    advice = _ADVICE_ON_CALLS.get(problem, _SAME_CALLS)
    if difference.finished or problem == "line":
        # The trace includes calls of earlier cells, so a reader could not count to this one.
        place = "" if trace.earlier else f" at call {difference.collective.index + 1}"
        if set(members) != set(range(trace.world_size)):
            place += f" in the group of {_ranks(list(members))}"
        first = f"The ranks' calls first differ{place}: "
        summary = f"{first}{difference}"
        if last is not None and last.kind != "skipped_backward":
            summary += f" {last.summary}"
        advice += " " + (_PAIRED_SINCE if problem == "line" else _NO_ERROR)
    else:
        what = _WHAT_DIFFERS.get(problem, "call different collectives at the same point")
        summary = f"The ranks {what}: {difference}"
    if any(event.by == JOIN for event in trace if event.group == difference.collective.group):
        advice += " " + _IN_JOIN
    kind = "different_shapes" if tensors else "mismatched_collectives"
    return Diagnosis(kind, summary, advice, waits, _odd_ones(difference))


_WHAT_DIFFERS = {
    "shape": "pass tensors of different sizes to the same collective",
    "dtype": "pass tensors of different dtypes to the same collective",
    "splits": "send and expect different numbers of elements in the same collective",
    "root": "pass different roots to the same collective",
    "reduce_op": "pass different ops to the same collective",
}
_SAME_CALLS = "All members of a group must call the same collectives in the same order."
_SAME_TENSORS = "Pass a contiguous tensor of the same shape and dtype on every rank."
_ADVICE_ON_CALLS = {
    "shape": _SAME_TENSORS,
    "dtype": _SAME_TENSORS,
    "root": "All members of a group must pass the same root: the same `src` in broadcast and scatter, the "
    "same `dst` in reduce and gather.",
    "reduce_op": "All members of a group must reduce with the same op.",
    "splits": "Each rank must expect as many elements as the other rank sends: input_split_sizes[j] of rank "
    "i must equal output_split_sizes[i] of rank j. If the sizes are not known in advance, exchange them "
    "first.",
    "line": "Look at the calls on these two lines: all members of the group must make each of them, or none.",
}
_PAIRED_SINCE = (
    "Each later collective was paired with the wrong one, so its result may be wrong, too."
)
_NO_ERROR = "The call raised no error, but its result is wrong on at least one rank."
_IN_JOIN = (
    "Within join(), a rank that has no batches left takes part only in the calls that DDP makes. Make "
    "your own calls after the `with` block."
)


def _crosswise(states: Sequence[RankState], trace: Trace, waits: Waits) -> Diagnosis | None:
    """Find two ranks that wait for each other in collectives of two groups that both belong to."""
    # Each group numbers its own collectives, so comparing calls within one group does not show this.
    blocked = [wait for wait in waits if wait.event is not None and wait.event.is_collective]
    for one in blocked:
        for other in blocked:
            assert one.event is not None and other.event is not None
            crosswise = other.rank in one.waits_for and one.rank in other.waits_for
            if crosswise and one.event.group != other.event.group:
                return Diagnosis(
                    "mismatched_collectives",
                    f"Two groups are used in different orders: rank {one.rank} is in "
                    f"{one.call}{at(one.event)} of one group while rank {other.rank} is in "
                    f"{other.call}{at(other.event)} of the other group, and both ranks are in both "
                    "groups.",
                    "Ranks that share several groups must use them in the same order.",
                    waits,
                    (one.rank, other.rank),
                )
    return None


def _odd_ones(difference: Difference) -> tuple[int, ...]:
    """Return the ranks whose call differs from that of the majority, or all ranks if there is no majority."""
    if difference.problem in {"line", "splits"}:
        return (difference.one.rank, difference.other.rank)
    counts: dict[object, list[int]] = {}
    for call in difference.collective.calls:
        counts.setdefault(comparison_key(call, difference.problem), []).append(call.rank)
    most = max(len(ranks) for ranks in counts.values())
    # If two halves disagree, neither is the odd one.
    if sum(len(ranks) == most for ranks in counts.values()) > 1:
        return tuple(call.rank for call in difference.collective.calls)
    return tuple(r for ranks in counts.values() if len(ranks) < most for r in sorted(ranks))


def _skipped_backward(states: Sequence[RankState], trace: Trace, waits: Waits) -> Diagnosis | None:
    """Find a backward pass that communicates on only some ranks of a group."""
    inside = [s for s in states if not s.ended and s.inside in {"backward", "grad"} and s.pending]
    if not inside:
        return None
    call = inside[0].blocked or inside[0].pending[-1]
    members = call.group_ranks or range(trace.world_size)
    inside = [state for state in inside if state.rank in members]
    # an imagined run has only some of the ranks
    others = [state for state in states if state.rank in members and state not in inside]
    if not others:
        return None
    ranks = _ranks([s.rank for s in inside])
    missing = _ranks([s.rank for s in others])
    if _is_ddp(call):
        doing = "is reducing gradients" if len(inside) == 1 else "are reducing gradients"
        rest = f"{missing} {_has(others)} not reduced them in this step."
        advice = _REDUCE_IN_EACH_STEP
    else:
        doing = f"{'calls' if len(inside) == 1 else 'call'} {call.call}{at(call)}"
        rest = f"{missing} {'does' if len(others) == 1 else 'do'} not make this call."
        advice = _BACKWARD_ON_ALL
    return Diagnosis(
        "skipped_backward",
        f"{ranks.capitalize()} {_is(inside)} in backward() and {doing}; {rest}",
        advice,
        waits,
        tuple(s.rank for s in others),
    )


def _is_ddp(call: Event) -> bool:
    """Return whether a call in a backward pass comes from DDP's reducer in C++ or a communication hook."""
    hook = call.by.startswith("distributed/algorithms/ddp_comm_hooks/")
    return hook or (call.op == "all_reduce" and call.by == "autograd/graph.py")


_REDUCE_IN_EACH_STEP = (
    "With DDP every rank must reduce the gradients in every step. A rank fails to do so if it skips "
    "backward(), if it has fewer batches (give all ranks the same number, or use the join() context "
    "manager), or if its loss depends on no parameter of the model."
)
_BACKWARD_ON_ALL = (
    "The backward pass of this program communicates, so all ranks of the group must call backward() "
    "the same number of times, on results of the same layers."
)


def _never_waited(states: Sequence[RankState], trace: Trace, waits: Waits) -> Diagnosis | None:
    """Find a call whose counterpart is an isend or irecv on whose Work wait() was never called."""
    blocked = {(w.event.rank, w.event.seq): w.event for w in waits if w.event is not None}
    for message in trace.messages():
        ends = [message.send, message.recv]
        for one, other in (ends, ends[::-1]):
            if one is None or other is None or (one.rank, one.seq) not in blocked:
                continue
            if other.asynchronous and other.wait_ns is None and not other.finished:
                return Diagnosis(
                    "never_waited",
                    f"Rank {one.rank} waits in {one.call}{at(one)} for the {other.call} of rank "
                    f"{other.rank}{at(other)}, but rank {other.rank} never called wait() on it.",
                    f"Keep the Work that {other.call} returns, and call its wait(). With gloo, only "
                    "wait() guarantees that a transfer completes. If you do not keep the Work, the "
                    "transfer may be cancelled.",
                    waits,
                    (other.rank,),
                )
    return None


def _missing_key(states: Sequence[RankState], trace: Trace, waits: Waits) -> Diagnosis | None:
    """Find a rank that waits for a key of a store which no rank can set any more."""
    for state in states:
        if not state.ended and state.keys:
            where = f" ({state.at})" if state.at else ""
            return Diagnosis(
                "missing_key",
                f"Rank {state.rank} waits in {state.inside}{where} for {_keys(state.keys)}, which no "
                "rank has set or will set.",
                "Check that the rank that sets the key reaches that line, and that both ranks spell "
                "the key in the same way. A PrefixStore puts its prefix before each key.",
                waits,
                (state.rank,),
            )
    return None


def _file_lock(states: Sequence[RankState], trace: Trace, waits: Waits) -> Diagnosis | None:
    """Find a rank that waits for a file lock whose holder cannot continue either."""
    for state in states:
        for holder in () if state.ended else state.lockers:
            theirs = waits[holder]
            does = f"{theirs.call}{at(theirs.event)}" if theirs.event else theirs.state
            doing = "waits in" if theirs.event else "is"
            where = f" ({state.at})" if state.at else ""
            both = f", while rank {holder} {doing} {does}" if holder != state.rank else " itself"
            return Diagnosis(
                "file_lock",
                f"Rank {state.rank} waits{where} for a file lock that rank {holder} holds{both}.",
                "Release the lock before a call that waits for other ranks: end the `with` block, or unlock "
                "the file, first.",
                waits,
                (holder,),
            )
    return None


def _keys(keys: Sequence[str]) -> str:
    names = ", ".join(map(repr, keys))
    return f"the key {names}" if len(keys) == 1 else f"the keys {names}"


def _diagnose_exited_rank(
    states: Sequence[RankState], trace: Trace, waits: Waits
) -> Diagnosis | None:
    gone = {state.rank for state in states if state.ended}
    # A rank that has ended makes no more calls, so a wait for it never ends.
    for wait in waits:
        left = [rank for rank in wait.waits_for if rank in gone]
        if left and wait.event is not None:
            return Diagnosis(
                "rank_left",
                f"{_ranks(left).capitalize()} {_has(left)} returned, but "
                f"rank {wait.rank} still waits for {'them' if len(left) > 1 else 'it'} in "
                f"{wait.call}{at(wait.event)}.",
                _advice_on_leaving(wait.event, left),
                waits,
                tuple(left),
            )
    if gone and not any(wait.event for wait in waits) and not _local_group(states):
        others = [state for state in states if not state.ended]
        where = next((state.inside for state in others if state.inside), "torch")
        return Diagnosis(
            "rank_left",
            f"{_ranks(sorted(gone)).capitalize()} {_has(gone)} returned, and "
            f"{_ranks([state.rank for state in others])} still wait{'s' * (len(others) == 1)} in "
            f"{where} for {'them' if len(gone) > 1 else 'it'}.",
            _NEW_GROUP if where in _GROUP_MAKERS else "All ranks must make this call.",
            waits,
            tuple(sorted(gone)),
        )
    return None


_GROUP_MAKERS = frozenset({"new_group", "split_group"})
_NEW_GROUP = (
    "All ranks of the world must call new_group the same number of times and in the same order, "
    "including for groups that they are not members of. In each call all of them must pass the same "
    "list of ranks."
)


def _local_group(states: Sequence[RankState]) -> list[RankState]:
    """Return the ranks that make groups with use_local_synchronization, if all members are among them."""
    there = [state for state in states if state.inside in _GROUP_MAKERS and state.needs]
    ranks = {state.rank for state in there}
    return there if there and all(ranks.issuperset(state.needs) for state in there) else []


def _making_groups(states: Sequence[RankState], trace: Trace, waits: Waits) -> Diagnosis | None:
    """Find ranks that have all called new_group, but for different groups."""
    there = [state for state in states if not state.ended and state.inside in _GROUP_MAKERS]
    if local := _local_group(states):
        return Diagnosis(
            "stuck",
            f"{_ranks([state.rank for state in local]).capitalize()} wait for each other in "
            "new_group(..., use_local_synchronization=True), although all members of the group have "
            "called it.",
            "torch names such a group after its members and the number of groups that the rank "
            "already has, so every member must have created the same number of groups before. Look "
            "for a new_group that only some of them call.",
            waits,
            tuple(state.rank for state in local),
        )
    first = next((state for state in there if state.named and not state.needs), None)
    for state in there:
        if first is not None and state.named != first.named and not state.needs and state.named:
            return Diagnosis(
                "stuck",
                f"The ranks create different groups: rank {first.rank} is in new_group for "
                f"{_ranks(list(first.named))} (at {first.at}), while rank {state.rank} is in new_group "
                f"for {_ranks(list(state.named))} (at {state.at}).",
                _NEW_GROUP,
                waits,
                (first.rank, state.rank),
            )
    return None


def _advice_on_leaving(event: Event, left: list[int]) -> str:
    if event.is_collective:
        return f"All ranks of the group must call {event.call}, or none."
    other = "recv" if event.op == "send" else "send"
    return (
        f"Either {_ranks(left)} must make the {other} that answers this call before returning, or "
        f"rank {event.rank} must not make this call."
    )


def _diagnose_tag_mismatch(
    states: Sequence[RankState], trace: Trace, waits: Waits
) -> Diagnosis | None:
    """Find a send and a receive between the same two ranks that differ only in their tag."""
    calls = [wait.event for wait in waits if wait.event is not None]
    for send in (call for call in calls if call.op == "send"):
        for recv in (call for call in calls if call.op == "recv"):
            facing = send.peer == recv.rank and recv.peer in {send.rank, None}
            if facing and send.tag != recv.tag and send.group == recv.group:
                return Diagnosis(
                    "unmatched",
                    f"The tags differ: rank {send.rank} sends {_tag(send)}{at(send)}, while rank "
                    f"{recv.rank} receives {_tag(recv)}{at(recv)}.",
                    "A receive takes only a message with its own tag; without `tag` it is tag 0. Give "
                    "both calls the same tag, or reorder the calls so that they match.",
                    waits,
                    (send.rank, recv.rank),
                )
    return None


def _diagnose_wrong_peer(
    states: Sequence[RankState], trace: Trace, waits: Waits
) -> Diagnosis | None:
    """Find an asynchronous send to a rank whose asynchronous receive names a different sender."""
    pending = [call for state in states for call in state.pending if call.asynchronous]
    sends = [call for call in pending if call.op == "send"]
    recvs = [call for call in pending if call.op == "recv"]
    for send in sends:
        theirs = [recv for recv in recvs if recv.rank == send.peer and recv.group == send.group]
        if not theirs or any(recv.peer in {send.rank, None} for recv in theirs):
            continue
        recv = theirs[0]
        if any((s.rank, s.peer) == (recv.peer, recv.rank) for s in sends):
            # The sender that this receive names does send to it, so `send` belongs to a different
            # exchange.
            continue
        return Diagnosis(
            "unmatched",
            f"The peers differ: rank {send.rank} sends to rank {recv.rank}{at(send)}, but rank {recv.rank} "
            f"receives from rank {recv.peer}{at(recv)}.",
            "A receive must name the rank that sends to it. In a ring, a rank that sends to rank + 1 "
            "receives from rank - 1.",
            waits,
            (send.rank, recv.rank),
        )
    return None


def _tag(event: Event) -> str:
    return f"with tag {event.tag}" + ("" if event.tag else " (the default)")


def _cycle(states: Sequence[RankState], trace: Trace, waits: Waits) -> Diagnosis | None:
    """Follow `waits_for` until a rank repeats."""
    for start in waits:
        path = [start.rank]
        while True:
            targets = waits[path[-1]].waits_for
            if not targets or targets[0] >= len(waits):
                break
            if targets[0] in path:
                cycle = path[path.index(targets[0]) :]
                return _cycle_of(cycle, states, trace, waits)
            path.append(targets[0])
    return None


def _cycle_of(
    cycle: list[int], states: Sequence[RankState], trace: Trace, waits: Waits
) -> Diagnosis:
    calls = {waits[rank].event.op for rank in cycle if waits[rank].event}  # type: ignore[union-attr]
    chain = " -> ".join(str(rank) for rank in [*cycle, cycle[0]])
    if len(cycle) == 1:
        summary = f"Rank {cycle[0]} waits for itself."
        advice = "A rank cannot exchange messages with itself: copy the tensor instead."
    elif calls == {"send"}:
        summary = f"A cycle of sends: each rank waits until the next one receives ({chain})."
        advice = "A send returns when its peer receives: let one rank of each pair receive first."
        if recv := _unpaired(cycle, states, trace, "recv"):
            facing = _facing(recv, waits)
            summary += f" Rank {recv.rank} is receiving a message that is never sent: {facing}."
            advice = _NAME_EACH_OTHER
    elif calls == {"recv"}:
        summary = (
            f"A cycle of receives: each rank waits for a message that no rank has sent ({chain})."
        )
        advice = "Let at least one rank send before it receives."
        if send := _unpaired(cycle, states, trace, "send"):
            summary = (
                f"A cycle of receives: each rank waits for a message that is never sent ({chain}). "
                f"Rank {send.rank} is sending a message that is never received: {_facing(send, waits)}."
            )
            advice = _NAME_EACH_OTHER
    else:
        summary = f"A cycle: each rank waits for the next one ({chain})."
        advice = "Reorder the calls on one of these ranks so that each call meets its counterpart."
        collectives = sorted(calls - {"send", "recv"})
        if collectives and len(collectives) < len(calls):
            # no order helps if the counterpart is missing, as when a rank receives what another broadcasts
            names = " or ".join(collectives)
            advice = (
                f"Each call needs its counterpart: {names} on all ranks of the group, a recv for each send. "
                "Call the one that is missing, or reorder the calls on one of these ranks."
            )
    return Diagnosis("cycle", summary, advice, waits, tuple(cycle))


_NAME_EACH_OTHER = (
    "A send and its receive must name each other, with the same tag (0 if none is given): compare the two "
    "lines. If they belong to different messages, change the order of the calls."
)


def _unpaired(cycle: list[int], states: Sequence[RankState], trace: Trace, op: str) -> Event | None:
    """Return an asynchronous call, begun by a rank of a cycle, that has no counterpart."""
    paired = {
        (end.rank, end.seq)
        for message in trace.messages()
        if message.recv is not None
        for end in (message.send, message.recv)
    }
    begun = (call for rank in cycle for call in states[rank].pending)
    return next(
        (
            call
            for call in begun
            if call.op == op and call.peer in cycle and (call.rank, call.seq) not in paired
        ),
        None,
    )


def _facing(call: Event, waits: Waits) -> str:
    """Describe a call without a counterpart, and the call in which its peer waits instead."""
    peer = call.peer if call.peer is not None else call.rank
    met = waits[peer].event
    assert met is not None
    of = {"send": "to", "recv": "from"}
    return (
        f"{call.call} {of[call.op]} rank {peer} {_tag(call)}{at(call)}, while rank {peer} is in {met.call} "
        f"{of[met.op]} rank {met.peer} {_tag(met)}{at(met)}"
    )


def _diagnose_blocked_outside_torch(
    states: Sequence[RankState], trace: Trace, waits: Waits
) -> Diagnosis | None:
    """Find a rank that others wait for, and that is blocked in its own code, not in a call to them."""
    for wait in waits:
        for rank in wait.waits_for:
            other = next((state for state in states if state.rank == rank), None)
            if wait.event is None or other is None or other.ended or other.inside or other.blocked:
                continue
            where = f" at {other.at}" if other.at else ""
            return Diagnosis(
                "stuck",
                f"Rank {rank} is blocked in its own code{where}, and no thread can unblock it. Rank "
                f"{wait.rank} waits for it in {wait.call}{at(wait.event)}.",
                _IN_OWN_CODE,
                waits,
                (rank,),
            )
    return None


def _unmatched(states: Sequence[RankState], trace: Trace, waits: Waits) -> Diagnosis | None:
    for wait in waits:
        if wait.event is not None and wait.waits_for:
            return Diagnosis(
                "unmatched",
                f"Rank {wait.rank} waits in {wait.call}{at(wait.event)} for "
                f"{_ranks(list(wait.waits_for))}, which {'does' if len(wait.waits_for) == 1 else 'do'} "
                "not make the matching call.",
                "Compare peer, tag and group of both calls: they must match.",
                waits,
                (wait.rank, *wait.waits_for),
            )
    return None


def _ranks(ranks: list[int]) -> str:
    if len(ranks) == 1:
        return f"rank {ranks[0]}"
    return "ranks " + ", ".join(map(str, ranks[:-1])) + f" and {ranks[-1]}" if ranks else "no rank"


def _has(some: Collection[object]) -> str:
    return "have" if len(some) > 1 else "has"


def _is(some: Sequence[object]) -> str:
    return "are" if len(some) > 1 else "is"
