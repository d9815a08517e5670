"""Determine which ranks wait for which other ranks, and whether these waits can still end."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace

from helpers.trace.events import CallWait, Diagnosis, Event, OtherWait, Trace, Wait
from helpers.trace.mismatch import find_problem
from helpers.trace.rank_state import RankState
from helpers.trace.wording import name_keys, name_ranks


@dataclass(frozen=True, slots=True)
class StuckWorld:
    """All known facts about a world to be explained.

    Attributes:
        states: The state of each rank, in order.
        trace: The recorded calls of the ranks.
        waits: The wait of each rank, in order.
    """

    states: Sequence[RankState]
    trace: Trace
    waits: tuple[Wait, ...]

    @property
    def call_waits(self) -> tuple[CallWait, ...]:
        """The waits in recorded calls."""
        return tuple(wait for wait in self.waits if isinstance(wait, CallWait))

    def diagnosis(
        self, kind: str, summary: str, advice: str, guilty: tuple[int, ...] = ()
    ) -> Diagnosis:
        """Return a diagnosis with the waits of this world."""
        return Diagnosis(kind, summary, advice, self.waits, guilty)


def stuck_world(states: Sequence[RankState], trace: Trace) -> StuckWorld:
    """Return a world with the waits derived from its states and its trace."""
    return StuckWorld(states, trace, tuple(_rank_wait(state, trace) for state in states))


def _rank_wait(state: RankState, trace: Trace) -> Wait:
    if state.ended:
        words = {"returned": "has returned", "failed": "has failed", "died": "has died"}
        return OtherWait(state.rank, words[state.state])
    # A rank in gloo's wait() is no longer in the call itself, so use the last call that it started.
    event = state.blocked or (state.pending[-1] if state.pending and state.inside else None)
    if event is not None:
        return CallWait(state.rank, event, _awaited_ranks(event, trace), state.handling)
    where = f" at {state.at}" if state.at else ""
    inside = f"in {state.inside}" if state.inside else "in its own code"
    if state.keys:
        inside += f" for {name_keys(state.keys)}"
    if state.lockers:
        doing = f"waits for a file lock of {name_ranks(state.lockers)}{where}"
        return OtherWait(state.rank, doing, state.lockers, state.handling)
    threads = "".join(f"; its thread {name!r} at {line}" for name, line in state.others)
    child = (
        f"; its {state.child}, but a forked process has none of the rank's connections"
        if state.child
        else ""
    )
    return OtherWait(state.rank, inside + where + threads + child, handling=state.handling)


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


def with_pending_call(state: RankState, states: Sequence[RankState], trace: Trace) -> RankState:
    """Return the state as if the rank waited for an asynchronous call with an exited rank as its peer.

    In such a state, the rank polls, for example by `while not work.is_completed()`.
    """
    exited = {other.rank for other in states if other.ended}
    if state.ended or state.blocked is not None:
        return state
    for call in state.pending:
        if call.op != "span" and not exited.isdisjoint(_awaited_ranks(call, trace)):
            return replace(state, blocked=call)
    return state


def is_hopeless(world: StuckWorld) -> bool:
    """Return whether a rank waits for an ended rank, or all ranks wait for each other."""
    ended = {state.rank for state in world.states if state.ended}
    stuck = {wait.rank: wait for wait in world.call_waits if wait.waits_for}
    if any(_never_ends(wait, ended) for wait in stuck.values()):
        return True
    while others := [rank for rank, wait in stuck.items() if not _never_ends(wait, stuck)]:
        for rank in others:
            del stuck[rank]
    return bool(stuck) and stuck.keys() == {state.rank for state in world.states} - ended


def _never_ends(wait: CallWait, dead: Collection[int]) -> bool:
    """Return whether a wait cannot end because dead ranks make no more calls."""
    is_any = wait.event.op == "recv" and wait.event.peer is None
    return (all if is_any else any)(rank in dead for rank in wait.waits_for)


def can_complete(states: Sequence[RankState], trace: Trace) -> bool:
    """Return whether a pending call has all of its counterparts, so that the world may still continue."""
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
        if recv is None:  # Only a finished receive from any source knows its sender.
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
