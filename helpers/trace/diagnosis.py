"""Explain why no rank can continue: which rank waits for which, and which calls do not match.

The detector in `helpers/ranks/watch.py` decides from outside *whether* a world is deadlocked. This module is
pure: it takes states and a trace, and returns a `Diagnosis`.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from helpers.trace.departure import LEAVE_TOGETHER_ADVICE
from helpers.trace.events import Diagnosis, Event, Trace, Wait
from helpers.trace.joins import APART_ADVICE, SAME_SIZE_ADVICE, JoinCall, find_join_problem
from helpers.trace.mismatch import (
    JOIN_FILE,
    TENSOR_PROBLEMS,
    Difference,
    at,
    comparison_key,
    describe_mismatch,
    find_problem,
    first_difference,
    is_gradient_call,
)

Waits = tuple[Wait, ...]

FINISHED_STATES = frozenset({"returned", "failed", "died"})


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
        joins: The call of init_process_group that it is in.
        meets: The rendezvous that it is in, which `inside` may have called, such as "new_group".
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
    joins: JoinCall | None = None
    meets: str = ""

    @property
    def ended(self) -> bool:
        return self.state in FINISHED_STATES

    @property
    def makes_group(self) -> bool:
        """Whether it is in new_group, or in a function such as DeviceMesh that calls it."""
        return not self.ended and not _GROUP_MAKERS.isdisjoint((self.inside, self.meets))


_OWN_CODE_ADVICE = (
    "Look at the line of each rank for a lock that is never released, a queue that stays empty, or a "
    "thread that never ends."
)


def diagnose(states: Sequence[RankState], trace: Trace) -> Diagnosis:
    """Explain a world in which no rank can continue. states: one for each rank, in order."""
    waits = tuple(_rank_wait(state, states, trace) for state in states)
    difference, present = first_difference(trace), _diagnose_present_waits(states, trace, waits)
    if difference is not None:
        return _diagnose_different_calls(difference, trace, waits, present)
    if present is not None:
        return present
    setup_calls = {state.inside for state in states} & {"init_process_group", "new_group"}
    joins = [state.joins for state in states]
    if all(join is not None and join.world_size == len(states) for join in joins):
        return Diagnosis(
            "stuck",
            "All ranks wait in init_process_group, each for the whole world, but do not meet: they use "
            "different stores or files, or a file of an earlier job.",
            APART_ADVICE,
            waits,
        )
    if setup_calls:
        calls = " and ".join(sorted(setup_calls))
        return Diagnosis(
            "stuck",
            f"Every rank waits in {calls} for ranks that never make this call.",
            SAME_SIZE_ADVICE if "init_process_group" in setup_calls else _NEW_GROUP_ADVICE,
            waits,
        )
    if not any(wait.event for wait in waits) and not any(state.inside for state in states):
        return Diagnosis(
            "stuck",
            "All ranks are blocked: each rank waits in its own code, and no thread can unblock it.",
            _OWN_CODE_ADVICE,
            waits,
        )
    return Diagnosis(
        "stuck",
        "All ranks are blocked, and their calls do not show why.",
        "Compare the calls of the ranks: each call must have its counterpart.",
        waits,
    )


def diagnose_timeout(states: Sequence[RankState], trace: Trace) -> Diagnosis | None:
    """Explain a world whose time is up, if more time would not have helped; otherwise return None."""
    states = [_with_pending_call(state, states, trace) for state in states]
    for state in states:
        if state.child and not state.ended:
            waits = tuple(_rank_wait(state, states, trace) for state in states)
            summary = (
                f"Rank {state.rank} waits for a process that it has forked: its {state.child}."
            )
            return Diagnosis("stuck", summary, _CHILD_ADVICE, waits, (state.rank,))
    if can_complete(states, trace):
        return None
    waits = tuple(_rank_wait(state, states, trace) for state in states)
    for certain_cause in (_diagnose_joins, _diagnose_file_lock):
        if (diagnosis := certain_cause(states, trace, waits)) is not None:
            return diagnosis
    return diagnose(states, trace) if _is_hopeless(states, waits) else None


_CHILD_ADVICE = (
    "Call functions of torch.distributed only in the rank itself: let the dataset read files and return "
    "values, and communicate after the DataLoader has returned the batch."
)


def _with_pending_call(state: RankState, states: Sequence[RankState], trace: Trace) -> RankState:
    """Return the state as if the rank waited for an asynchronous call that an exited rank must answer.

    Such a rank polls, as in `while not work.is_completed()`.
    """
    exited = {other.rank for other in states if other.ended}
    if state.ended or state.blocked is not None:
        return state
    for call in state.pending:
        if call.op != "span" and not exited.isdisjoint(_awaited_ranks(call, trace)):
            return replace(state, blocked=call)
    return state


def _is_hopeless(states: Sequence[RankState], waits: Waits) -> bool:
    """Return whether a rank waits for one that has ended, or all ranks wait for each other."""
    ended = {state.rank for state in states if state.ended}
    stuck = {wait.rank for wait in waits if wait.event is not None and wait.waits_for}

    def never_ends(wait: Wait, dead: set[int]) -> bool:
        assert wait.event is not None
        is_any = wait.event.op == "recv" and wait.event.peer is None
        return (all if is_any else any)(rank in dead for rank in wait.waits_for)

    if any(never_ends(wait, ended) for wait in waits if wait.rank in stuck):
        return True
    while others := {
        wait.rank for wait in waits if wait.rank in stuck and not never_ends(wait, stuck)
    }:
        stuck -= others
    return bool(stuck) and stuck == {state.rank for state in states} - ended


def can_complete(states: Sequence[RankState], trace: Trace) -> bool:
    """Return whether a pending call has all its counterparts, so that the world may still continue."""
    for collective in trace.collectives():
        open_calls = [call for call in collective.calls if not call.finished]
        # All members have made the call, but gloo may not have notified all of them yet.
        is_matching = find_problem(collective) in {
            None,
            "reduce_op",
        }  # gloo does not send the reduction
        if open_calls and collective.complete and is_matching:
            return True
    blocked = {(state.rank, state.blocked.seq) for state in states if state.blocked is not None}
    from_any = [
        event for event in trace if event.op == "recv" and event.peer is None and not event.finished
    ]
    for message in trace.messages():
        send, recv = message.send, message.recv
        if recv is None:  # A receive from any source knows its sender only when it has finished.
            receivers = [
                event
                for event in from_any
                if (event.rank, event.group, event.tag) == (send.peer, send.group, send.tag)
            ]
            if receivers and not blocked.isdisjoint(
                (event.rank, event.seq) for event in (send, *receivers)
            ):
                return True
        elif not (send.finished and recv.finished) and not blocked.isdisjoint(
            {(send.rank, send.seq), (recv.rank, recv.seq)}
        ):
            return True
    return False


def _rank_wait(state: RankState, states: Sequence[RankState], trace: Trace) -> Wait:
    if state.ended:
        words = {"returned": "has returned", "failed": "has failed", "died": "has died"}
        return Wait(state.rank, words[state.state])
    # A rank in gloo's wait() is not in the call itself, so take the last call that it started.
    event = state.blocked or (state.pending[-1] if state.pending and state.inside else None)
    if event is None:
        where = f" at {state.at}" if state.at else ""
        inside = f"in {state.inside}" if state.inside else "in its own code"
        if state.keys:
            inside += f" for {_name_keys(state.keys)}"
        if state.lockers:
            doing = f"waits for a file lock of {_name_ranks(list(state.lockers))}{where}"
            return Wait(state.rank, doing, None, state.lockers)
        threads = "".join(f"; its thread {name!r} at {line}" for name, line in state.others)
        child = (
            f"; its {state.child}, but a forked process has none of the rank's connections"
            if state.child
            else ""
        )
        return Wait(state.rank, inside + where + threads + child)
    return Wait(state.rank, "blocked", event, _awaited_ranks(event, trace))


def _awaited_ranks(event: Event, trace: Trace) -> tuple[int, ...]:
    """Return the ranks that must act before this call can finish."""
    if event.op in {"send", "recv"}:
        if event.peer is not None:
            return (event.peer,)
        return tuple(rank for rank in event.group_ranks if rank != event.rank)
    for collective in trace.collectives():
        if any(call.seq == event.seq and call.rank == event.rank for call in collective.calls):
            arrived = {call.rank for call in collective.calls if call.op == event.op}
            return tuple(rank for rank in collective.group_ranks if rank not in arrived)
    return ()


def _diagnose_present_waits(
    states: Sequence[RankState], trace: Trace, waits: Waits
) -> Diagnosis | None:
    """Explain what ranks wait for now, even if their earlier calls differ."""
    # The order matters: causes that are certain come before calls that only lack a counterpart, and each
    # cause comes before the cycles that follow from it.
    for diagnose_cause in (
        _diagnose_joins,
        _diagnose_group_order,
        _diagnose_skipped_backward,
        _diagnose_missing_wait,
        _diagnose_missing_key,
        _diagnose_file_lock,
        _diagnose_new_group,
        _diagnose_exited_rank,
        _diagnose_tag_mismatch,
        _diagnose_wrong_peer,
        _diagnose_cycle,
        _diagnose_blocked_outside_torch,
        _diagnose_unmatched_call,
    ):
        diagnosis = diagnose_cause(states, trace, waits)
        if diagnosis is not None:
            return diagnosis
    return None


def _diagnose_different_calls(
    difference: Difference, trace: Trace, waits: Waits, present: Diagnosis | None
) -> Diagnosis:
    """Describe the first calls that differ. If they have finished, `present` explains the present waits."""
    problem, members = difference.problem, difference.collective.group_ranks
    has_tensor_problem = problem in TENSOR_PROBLEMS
    advice = _advice_on(difference)
    if difference.finished or problem == "line":
        # The trace includes calls of earlier cells, so a reader could not count to this one.
        place = "" if trace.earlier else f" at call {difference.collective.index + 1}"
        if set(members) != set(range(trace.world_size)):
            place += f" in the group of {_name_ranks(list(members))}"
        first = f"The ranks' calls first differ{place}: "
        summary = f"{first}{difference}"
        if present is not None and present.kind != "skipped_backward":
            summary += f" {present.summary}"
        advice += " " + (_WRONG_PAIRS_NOTE if problem == "line" else _NO_ERROR_NOTE)
    else:
        difference_text = _DIFFERENCE_TEXTS.get(
            problem, "call different collectives at the same point"
        )
        summary = f"The ranks {difference_text}: {difference}"
    if difference.skipping is not None:
        summary += " " + _SKIPPING_TEXT.format(difference.skipping)
    if any(event.by == JOIN_FILE for event in trace if event.group == difference.collective.group):
        advice += " " + _JOIN_ADVICE
    kind = "different_shapes" if has_tensor_problem else "mismatched_collectives"
    return Diagnosis(kind, summary, advice, waits, _minority_ranks(difference))


def explain_mismatch(trace: Trace) -> str:
    """Return which calls do not match, and what to do, for ranks that gloo has aborted; "" if all match."""
    text = describe_mismatch(trace)
    difference = first_difference(trace, only_stuck=False)
    if difference is None or text != str(difference):
        return text
    if difference.skipping is not None:
        text += " " + _SKIPPING_TEXT.format(difference.skipping)
    return f"{text} {_advice_on(difference)}"


def _advice_on(difference: Difference) -> str:
    one, other = difference.call, difference.other_call
    if difference.skipping is not None:
        return _SKIPPING_ADVICE
    if difference.problem in {"op", "line"} and is_gradient_call(one) != is_gradient_call(other):
        behind = other if is_gradient_call(one) else one
        return _UNEVEN_ADVICE.format(behind=behind.rank, call=f"{behind.call}{at(behind)}")
    if difference.problem == "shape" and len(one.shapes) != len(other.shapes):
        return _COALESCED_ADVICE
    return _ADVICE_ON_CALLS.get(difference.problem, _SAME_CALLS_ADVICE)


_SKIPPING_TEXT = "Rank {0} has left out calls here that it made in an earlier round."
_SKIPPING_ADVICE = (
    "Look for a branch, a `continue` or an `except` on that rank: a rank that skips a step, or catches an "
    "exception such as out of memory, must still make the calls that the others make. Otherwise let all "
    "ranks skip the step together."
)
_UNEVEN_ADVICE = (
    "If rank {behind} has no batches left, give all ranks the same number of batches, or use DDP's join(). "
    "If only rank {behind} reaches its {call}, as in an evaluation on one rank, let all ranks make "
    "that call, or none."
)
_COALESCED_ADVICE = "Inside the coalescing block, every rank must make the same calls."
_DIFFERENCE_TEXTS = {
    "shape": "pass tensors of different sizes to the same collective",
    "dtype": "pass tensors of different dtypes to the same collective",
    "splits": "send and expect different numbers of elements in the same collective",
    "root": "pass different roots to the same collective",
    "reduce_op": "pass different ops to the same collective",
}
_SAME_CALLS_ADVICE = "All members of a group must call the same collectives in the same order."
_SAME_TENSORS_ADVICE = "Pass a contiguous tensor of the same shape and dtype on every rank."
_ADVICE_ON_CALLS = {
    "shape": _SAME_TENSORS_ADVICE,
    "dtype": _SAME_TENSORS_ADVICE,
    "root": "All members of a group must pass the same root: the same `src` in broadcast and scatter, the "
    "same `dst` in reduce and gather.",
    "reduce_op": "All members of a group must reduce with the same op.",
    "splits": "Each rank must expect as many elements as the other rank sends: input_split_sizes[j] of rank "
    "i must equal output_split_sizes[i] of rank j. If the sizes are not known in advance, exchange them "
    "first.",
    "line": "Look at the calls on these two lines: all members of the group must make each of them, or none.",
}
_WRONG_PAIRS_NOTE = (
    "Each later collective was paired with the wrong one, so its result may be wrong, too."
)
_NO_ERROR_NOTE = "The call raised no error, but its result is wrong on at least one rank."
_JOIN_ADVICE = (
    "Within join(), a rank that has no batches left takes part only in the calls that DDP makes. Make "
    "your own calls after the `with` block."
)


def _diagnose_joins(states: Sequence[RankState], trace: Trace, waits: Waits) -> Diagnosis | None:
    """Find ranks that call init_process_group with numbers that do not fit together."""
    joins = {state.rank: state.joins for state in states if state.joins is not None}
    problem = find_join_problem(joins, len(states)) if joins else None
    if problem is None:
        return None
    return Diagnosis("stuck", problem.summary, problem.advice, waits, problem.guilty)


def _diagnose_group_order(
    states: Sequence[RankState], trace: Trace, waits: Waits
) -> Diagnosis | None:
    """Find two ranks that wait for each other in collectives of two groups that both belong to."""
    # Each group numbers its own collectives, so comparing calls within one group does not show this.
    blocked = [wait for wait in waits if wait.event is not None and wait.event.is_collective]
    for one in blocked:
        for other in blocked:
            assert one.event is not None and other.event is not None
            is_mutual = other.rank in one.waits_for and one.rank in other.waits_for
            if is_mutual and one.event.group != other.event.group:
                return _describe_two_groups(one.event, other.event, trace, waits)
    return None


def _describe_two_groups(one: Event, other: Event, trace: Trace, waits: Waits) -> Diagnosis:
    """Describe two ranks in calls of two groups: one has left out a call, or their orders differ."""
    for skipping, waiting in ((one, other), (other, one)):
        # Some rank has made the call at which `waiting` is, and after it the one at which `skipping` is.
        if _is_usual_order(waiting, skipping, trace) and not _is_usual_order(
            skipping, waiting, trace
        ):
            return Diagnosis(
                "mismatched_collectives",
                f"Rank {skipping.rank} has left out {waiting.call}{at(waiting)} of "
                f"{_name_group(waiting, trace)}, in which rank {waiting.rank} waits for it. Rank "
                f"{skipping.rank} is already in {skipping.call}{at(skipping)} of "
                f"{_name_group(skipping, trace)}.",
                f"All ranks of a group must make each of its calls, or none: let rank {skipping.rank} call "
                f"{waiting.call} too.",
                waits,
                (skipping.rank,),
            )
    where = _name_group(one, trace), _name_group(other, trace)
    if where[0] == where[1]:
        where = f"one of two groups of {where[0].removeprefix('the group of ')}", "the other group"
    return Diagnosis(
        "mismatched_collectives",
        f"Two groups are used in different orders: rank {one.rank} is in {one.call}{at(one)} of {where[0]}, "
        f"while rank {other.rank} is in {other.call}{at(other)} of {where[1]}, and both ranks are in both "
        "groups."
        if one.where == other.where or _is_usual_order(one, other, trace)
        else f"Two ranks wait for each other in calls of two groups: rank {one.rank} is in "
        f"{one.call}{at(one)} of {where[0]}, while rank {other.rank} is in {other.call}{at(other)} of "
        f"{where[1]}, and both ranks are in both groups.",
        "Ranks that share several groups must use them in the same order, and none may leave out a call.",
        waits,
        (one.rank, other.rank),
    )


def _is_usual_order(first: Event, second: Event, trace: Trace) -> bool:
    """Return whether a rank has made the call on the line of `first` and, next in these lines, `second`."""
    # The groups may be different ones for each rank, as in a mesh, so go by the lines.
    if first.where is None or second.where is None or first.where == second.where:
        return False
    for rank in trace.ranks:
        lines = [call.where for call in trace.of(rank) if call.where in {first.where, second.where}]
        if any(pair == (first.where, second.where) for pair in pairwise(lines)):
            return True
    return False


def _name_group(call: Event, trace: Trace) -> str:
    if set(call.group_ranks) == set(range(trace.world_size)):
        return "the group of all ranks"
    return f"the group of {_name_ranks(list(call.group_ranks))}"


def _minority_ranks(difference: Difference) -> tuple[int, ...]:
    """Return the ranks whose call differs from that of the majority, or all ranks if there is no majority."""
    if difference.problem in {"line", "splits"}:
        return (difference.call.rank, difference.other_call.rank)
    counts: dict[object, list[int]] = {}
    for call in difference.collective.calls:
        counts.setdefault(comparison_key(call, difference.problem), []).append(call.rank)
    majority = max(len(ranks) for ranks in counts.values())
    # If two halves disagree, neither is the odd one.
    if sum(len(ranks) == majority for ranks in counts.values()) > 1:
        return tuple(call.rank for call in difference.collective.calls)
    return tuple(
        rank for ranks in counts.values() if len(ranks) < majority for rank in sorted(ranks)
    )


def _diagnose_skipped_backward(
    states: Sequence[RankState], trace: Trace, waits: Waits
) -> Diagnosis | None:
    """Find a backward pass that communicates on only some ranks of a group."""
    inside = [
        state
        for state in states
        if not state.ended and state.inside in {"backward", "grad"} and state.pending
    ]
    if not inside:
        return None
    call = inside[0].blocked or inside[0].pending[-1]
    members = call.group_ranks or range(trace.world_size)
    inside = [state for state in inside if state.rank in members]
    # an imagined run has only some of the ranks
    others = [state for state in states if state.rank in members and state not in inside]
    if not others:
        return None
    ranks = _name_ranks([state.rank for state in inside])
    missing = _name_ranks([state.rank for state in others])
    if is_gradient_call(call):
        action = "is reducing gradients" if len(inside) == 1 else "are reducing gradients"
        others_text = f"{missing} {_has_or_have(others)} not reduced them in this step."
        advice = _REDUCE_ADVICE
    else:
        action = f"{'calls' if len(inside) == 1 else 'call'} {call.call}{at(call)}"
        others_text = f"{missing} {'does' if len(others) == 1 else 'do'} not make this call."
        advice = _BACKWARD_ADVICE
    return Diagnosis(
        "skipped_backward",
        f"{ranks.capitalize()} {_is_or_are(inside)} in backward() and {action}; {others_text}",
        advice,
        waits,
        tuple(state.rank for state in others),
    )


_REDUCE_ADVICE = (
    "With DDP every rank must reduce the gradients in every step. A rank fails to do so if it skips "
    "backward(), if it has fewer batches (give all ranks the same number, or use the join() context "
    "manager), or if its loss depends on no parameter of the model."
)
_BACKWARD_ADVICE = (
    "The backward pass of this program communicates, so all ranks of the group must call backward() "
    "the same number of times, on results of the same layers."
)


def _diagnose_missing_wait(
    states: Sequence[RankState], trace: Trace, waits: Waits
) -> Diagnosis | None:
    """Find a call whose counterpart is an isend or irecv on whose Work wait() was never called."""
    blocked = {
        (wait.event.rank, wait.event.seq): wait.event for wait in waits if wait.event is not None
    }
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


def _diagnose_missing_key(
    states: Sequence[RankState], trace: Trace, waits: Waits
) -> Diagnosis | None:
    """Find a rank that waits for a key of a store which no rank can set any more."""
    for state in states:
        if not state.ended and state.keys:
            where = f" ({state.at})" if state.at else ""
            return Diagnosis(
                "missing_key",
                f"Rank {state.rank} waits in {state.inside}{where} for {_name_keys(state.keys)}, which no "
                "rank has set or will set.",
                "Check that the rank that sets the key reaches that line, and that both ranks spell "
                "the key in the same way. A PrefixStore puts its prefix before each key.",
                waits,
                (state.rank,),
            )
    return None


def _diagnose_file_lock(
    states: Sequence[RankState], trace: Trace, waits: Waits
) -> Diagnosis | None:
    """Find a rank that waits for a file lock whose holder cannot continue either."""
    for state in states:
        for holder in () if state.ended else state.lockers:
            holder_wait = waits[holder]
            holder_call = (
                f"{holder_wait.call}{at(holder_wait.event)}"
                if holder_wait.event
                else holder_wait.state
            )
            verb = "waits in" if holder_wait.event else "is"
            where = f" ({state.at})" if state.at else ""
            holder_text = (
                f", while rank {holder} {verb} {holder_call}" if holder != state.rank else " itself"
            )
            return Diagnosis(
                "file_lock",
                f"Rank {state.rank} waits{where} for a file lock that rank {holder} holds{holder_text}.",
                "Release the lock before a call that waits for other ranks: end the `with` block, unlock the "
                "file, or commit the transaction first.",
                waits,
                (holder,),
            )
    return None


def _name_keys(keys: Sequence[str]) -> str:
    names = ", ".join(map(repr, keys))
    return f"the key {names}" if len(keys) == 1 else f"the keys {names}"


def _diagnose_exited_rank(
    states: Sequence[RankState], trace: Trace, waits: Waits
) -> Diagnosis | None:
    exited = {state.rank for state in states if state.ended}
    # A rank that has ended makes no more calls, so a wait for it never ends.
    for wait in waits:
        exited_peers = [rank for rank in wait.waits_for if rank in exited]
        if exited_peers and wait.event is not None:
            return Diagnosis(
                "rank_left",
                f"{_name_ranks(exited_peers).capitalize()} {_has_or_have(exited_peers)} returned, but "
                f"rank {wait.rank} still waits for {'them' if len(exited_peers) > 1 else 'it'} in "
                f"{wait.call}{at(wait.event)}.",
                _exited_rank_advice(wait.event, exited_peers, trace),
                waits,
                tuple(exited_peers),
            )
    if (
        exited
        and not any(wait.event for wait in waits)
        and not _ranks_in_local_synchronization(states)
    ):
        others = [state for state in states if not state.ended]
        where = next((state.inside for state in others if state.inside), "torch")
        return Diagnosis(
            "rank_left",
            f"{_name_ranks(sorted(exited)).capitalize()} {_has_or_have(exited)} returned, and "
            f"{_name_ranks([state.rank for state in others])} still wait{'s' * (len(others) == 1)} in "
            f"{where} for {'them' if len(exited) > 1 else 'it'}.",
            _NEW_GROUP_ADVICE if where in _GROUP_MAKERS else "All ranks must make this call.",
            waits,
            tuple(sorted(exited)),
        )
    return None


_GROUP_MAKERS = frozenset({"new_group", "split_group"})
_NEW_GROUP_ADVICE = (
    "All ranks of the world must call new_group the same number of times and in the same order, "
    "including for groups that they are not members of. In each call all of them must pass the same "
    "list of ranks."
)


def _ranks_in_local_synchronization(states: Sequence[RankState]) -> list[RankState]:
    """Return the ranks that make groups with use_local_synchronization, if all members are among them."""
    making_groups = [state for state in states if state.makes_group and state.needs]
    ranks = {state.rank for state in making_groups}
    return (
        making_groups
        if making_groups and all(ranks.issuperset(state.needs) for state in making_groups)
        else []
    )


def _diagnose_new_group(
    states: Sequence[RankState], trace: Trace, waits: Waits
) -> Diagnosis | None:
    """Find ranks that have all called new_group, but for different groups."""
    making_groups = [state for state in states if state.makes_group]
    if local_group := _ranks_in_local_synchronization(states):
        return Diagnosis(
            "stuck",
            f"{_name_ranks([state.rank for state in local_group]).capitalize()} wait for each other in "
            "new_group(..., use_local_synchronization=True), although all members of the group have "
            "called it.",
            "torch names such a group after its members and the number of groups that the rank "
            "already has, so every member must have created the same number of groups before. Look "
            "for a new_group that only some of them call.",
            waits,
            tuple(state.rank for state in local_group),
        )
    first = next((state for state in making_groups if state.named and not state.needs), None)
    for state in making_groups:
        if first is not None and state.named != first.named and not state.needs and state.named:
            return Diagnosis(
                "stuck",
                f"The ranks create different groups: rank {first.rank} is in {_name_maker(first)} for "
                f"{_name_ranks(list(first.named))} (at {first.at}), while rank {state.rank} is in "
                f"{_name_maker(state)} for {_name_ranks(list(state.named))} (at {state.at}).",
                _NEW_GROUP_ADVICE,
                waits,
                (first.rank, state.rank),
            )
    return None


def _name_maker(state: RankState) -> str:
    if state.inside in _GROUP_MAKERS or not state.inside:
        return "new_group"
    return f"{state.inside}, which calls new_group"


def _exited_rank_advice(event: Event, exited_peers: list[int], trace: Trace) -> str:
    if event.is_collective:
        advice = f"All ranks of the group must call {event.call}, or none."
        # If the rank has made this call in earlier steps, it has left a loop.
        has_left_loop = any(
            event.where is not None and call.where == event.where
            for rank in exited_peers
            for call in trace.of(rank)
        )
        return f"{advice} {LEAVE_TOGETHER_ADVICE}" if has_left_loop else advice
    counterpart = "recv" if event.op == "send" else "send"
    return (
        f"Either {_name_ranks(exited_peers)} must make the {counterpart} that answers this call before "
        f"returning, or rank {event.rank} must not make this call."
    )


def _diagnose_tag_mismatch(
    states: Sequence[RankState], trace: Trace, waits: Waits
) -> Diagnosis | None:
    """Find a send and a receive between the same two ranks that differ only in their tag."""
    calls = [wait.event for wait in waits if wait.event is not None]
    for send in (call for call in calls if call.op == "send"):
        for recv in (call for call in calls if call.op == "recv"):
            is_pair = send.peer == recv.rank and recv.peer in {send.rank, None}
            if is_pair and send.tag != recv.tag and send.group == recv.group:
                return Diagnosis(
                    "unmatched",
                    f"The tags differ: rank {send.rank} sends {_describe_tag(send)}{at(send)}, while rank "
                    f"{recv.rank} receives {_describe_tag(recv)}{at(recv)}.",
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
        peer_recvs = [recv for recv in recvs if recv.rank == send.peer and recv.group == send.group]
        if not peer_recvs or any(recv.peer in {send.rank, None} for recv in peer_recvs):
            continue
        recv = peer_recvs[0]
        if any((other.rank, other.peer) == (recv.peer, recv.rank) for other in sends):
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


def _describe_tag(event: Event) -> str:
    return f"with tag {event.tag}" + ("" if event.tag else " (the default)")


def _diagnose_cycle(states: Sequence[RankState], trace: Trace, waits: Waits) -> Diagnosis | None:
    """Follow `waits_for` until a rank repeats."""
    for start in waits:
        path = [start.rank]
        while True:
            targets = waits[path[-1]].waits_for
            if not targets or targets[0] >= len(waits):
                break
            if targets[0] in path:
                cycle = path[path.index(targets[0]) :]
                return _describe_cycle(cycle, states, trace, waits)
            path.append(targets[0])
    return None


def _describe_cycle(
    cycle: list[int], states: Sequence[RankState], trace: Trace, waits: Waits
) -> Diagnosis:
    ops = {waits[rank].event.op for rank in cycle if waits[rank].event}  # type: ignore[union-attr]
    chain = " -> ".join(str(rank) for rank in [*cycle, cycle[0]])
    if len(cycle) == 1:
        summary = f"Rank {cycle[0]} waits for itself."
        advice = "A rank cannot exchange messages with itself: copy the tensor instead."
    elif ops == {"send"}:
        summary = f"A cycle of sends: each rank waits until the next one receives ({chain})."
        advice = (
            "A send returns when its peer receives: let one rank of each pair receive first, or start the "
            "sends with isend and wait for them after the receives."
        )
        if recv := _find_unpaired_call(cycle, states, trace, "recv"):
            facing = _describe_facing_calls(recv, waits)
            summary += f" Rank {recv.rank} is receiving a message that is never sent: {facing}."
            advice = _MATCHING_ADVICE
    elif ops == {"recv"}:
        summary = (
            f"A cycle of receives: each rank waits for a message that no rank has sent ({chain})."
        )
        advice = "Let at least one rank send before it receives."
        if send := _find_unpaired_call(cycle, states, trace, "send"):
            summary = (
                f"A cycle of receives: each rank waits for a message that is never sent ({chain}). "
                f"Rank {send.rank} is sending a message that is never received: "
                f"{_describe_facing_calls(send, waits)}."
            )
            advice = _MATCHING_ADVICE
    else:
        summary = f"A cycle: each rank waits for the next one ({chain})."
        advice = "Reorder the calls on one of these ranks so that each call meets its counterpart."
        collectives = sorted(ops - {"send", "recv"})
        if collectives and len(collectives) < len(ops):
            # no order helps if the counterpart is missing, as when a rank receives what another broadcasts
            names = " or ".join(collectives)
            advice = (
                f"Each call needs its counterpart: {names} on all ranks of the group, a recv for each send. "
                "Call the one that is missing, or reorder the calls on one of these ranks."
            )
    return Diagnosis("cycle", summary, advice, waits, tuple(cycle))


_MATCHING_ADVICE = (
    "A send and its receive must name each other, with the same tag (0 if none is given): compare the two "
    "lines. If they belong to different messages, change the order of the calls."
)


def _find_unpaired_call(
    cycle: list[int], states: Sequence[RankState], trace: Trace, op: str
) -> Event | None:
    """Return an asynchronous call, begun by a rank of a cycle, that has no counterpart."""
    paired = {
        (end.rank, end.seq)
        for message in trace.messages()
        if message.recv is not None
        for end in (message.send, message.recv)
    }
    pending_calls = (call for rank in cycle for call in states[rank].pending)
    return next(
        (
            call
            for call in pending_calls
            if call.op == op and call.peer in cycle and (call.rank, call.seq) not in paired
        ),
        None,
    )


def _describe_facing_calls(call: Event, waits: Waits) -> str:
    """Describe a call without a counterpart, and the call in which its peer waits instead."""
    peer = call.peer if call.peer is not None else call.rank
    peer_call = waits[peer].event
    assert peer_call is not None
    prepositions = {"send": "to", "recv": "from"}
    return (
        f"{call.call} {prepositions[call.op]} rank {peer} {_describe_tag(call)}{at(call)}, while rank {peer} "
        f"is in {peer_call.call} {prepositions[peer_call.op]} rank {peer_call.peer} "
        f"{_describe_tag(peer_call)}{at(peer_call)}"
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
                _OWN_CODE_ADVICE,
                waits,
                (rank,),
            )
    return None


def _diagnose_unmatched_call(
    states: Sequence[RankState], trace: Trace, waits: Waits
) -> Diagnosis | None:
    for wait in waits:
        if wait.event is not None and wait.waits_for:
            return Diagnosis(
                "unmatched",
                f"Rank {wait.rank} waits in {wait.call}{at(wait.event)} for "
                f"{_name_ranks(list(wait.waits_for))}, which {'does' if len(wait.waits_for) == 1 else 'do'} "
                "not make the matching call.",
                _unmatched_advice(wait.event, [states[rank] for rank in wait.waits_for]),
                waits,
                (wait.rank, *wait.waits_for),
            )
    return None


def _unmatched_advice(call: Event, others: Sequence[RankState]) -> str:
    if any(other.makes_group for other in others):
        ranks = [other.rank for other in others if other.makes_group]
        return f"{_name_ranks(ranks).capitalize()} {_is_or_are(ranks)} in new_group. {_NEW_GROUP_ADVICE}"
    if call.is_collective:
        return f"All ranks of the group must call {call.call}, or none."
    return "Compare peer, tag and group of both calls: they must match."


def _name_ranks(ranks: list[int]) -> str:
    if len(ranks) == 1:
        return f"rank {ranks[0]}"
    return "ranks " + ", ".join(map(str, ranks[:-1])) + f" and {ranks[-1]}" if ranks else "no rank"


def _has_or_have(members: Collection[object]) -> str:
    return "have" if len(members) > 1 else "has"


def _is_or_are(members: Sequence[object]) -> str:
    return "are" if len(members) > 1 else "is"
