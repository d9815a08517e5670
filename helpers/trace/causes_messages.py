"""Find sends and receives that do not match each other, and cycles of waits."""

from __future__ import annotations

from helpers.trace.cause import Priority, cause
from helpers.trace.events import Diagnosis, Event
from helpers.trace.mismatch import at
from helpers.trace.waits import StuckWorld
from helpers.trace.wording import describe_tag

_TO_ITSELF_ADVICE = "A rank cannot exchange messages with itself: copy the tensor instead."


@cause("missing wait", Priority.WRONG_LINE)
def find_missing_wait(world: StuckWorld) -> Diagnosis | None:
    """Find a call whose counterpart is an isend or irecv without a wait() on its Work."""
    blocked = {(wait.event.rank, wait.event.seq) for wait in world.call_waits}
    for message in world.trace.messages():
        ends = [message.send, message.recv]
        for one, other in (ends, ends[::-1]):
            if one is None or other is None or (one.rank, one.seq) not in blocked:
                continue
            if other.asynchronous and other.wait_ns is None and not other.finished:
                return world.diagnosis(
                    "never_waited",
                    f"Rank {one.rank} waits in {one.call}{at(one)} for the {other.call} of rank "
                    f"{other.rank}{at(other)}, but rank {other.rank} never called wait() on it.",
                    f"Keep the Work that {other.call} returns, and call its wait(). With gloo, only "
                    "wait() guarantees that a transfer completes. If you do not keep the Work, the "
                    "transfer may be cancelled.",
                    (other.rank,),
                )
    return None


@cause("receive from itself", Priority.WRONG_LINE)
def find_receive_from_itself(world: StuckWorld) -> Diagnosis | None:
    """Find a receive from any rank, in a group whose only member is the receiving rank."""
    for wait in world.call_waits:
        call = wait.event
        if call.op == "recv" and call.peer is None and set(call.group_ranks) == {wait.rank}:
            return world.diagnosis(
                "unmatched",
                f"Rank {wait.rank} waits for itself: its {call.call}{at(call)} accepts a message from any "
                f"rank of its group, but rank {wait.rank} is the only rank of this group.",
                f"{_TO_ITSELF_ADVICE} If the message should come from a different rank, receive it in a "
                "group that contains this rank, too.",
                (wait.rank,),
            )
    return None


@cause("tag mismatch", Priority.WRONG_PAIR)
def find_tag_mismatch(world: StuckWorld) -> Diagnosis | None:
    """Find a send and a receive between the same two ranks that differ only in their tags."""
    calls = [wait.event for wait in world.call_waits]
    for send in (call for call in calls if call.op == "send"):
        for recv in (call for call in calls if call.op == "recv"):
            is_pair = send.peer == recv.rank and recv.peer in {send.rank, None}
            if is_pair and send.tag != recv.tag and send.group == recv.group:
                return world.diagnosis(
                    "unmatched",
                    f"The tags differ: rank {send.rank} sends {describe_tag(send)}{at(send)}, while rank "
                    f"{recv.rank} receives {describe_tag(recv)}{at(recv)}.",
                    "A receive only accepts a message with the same tag, which is 0 by default. "
                    "Give "
                    "both calls the same tag, or reorder the calls so that they match.",
                    (send.rank, recv.rank),
                )
    return None


@cause("wrong peer", Priority.WRONG_PAIR)
def find_wrong_peer(world: StuckWorld) -> Diagnosis | None:
    """Find an asynchronous send to a rank whose asynchronous receive expects a different sender."""
    pending = [call for state in world.states for call in state.pending if call.asynchronous]
    sends = [call for call in pending if call.op == "send"]
    recvs = [call for call in pending if call.op == "recv"]
    for send in sends:
        peer_recvs = [recv for recv in recvs if recv.rank == send.peer and recv.group == send.group]
        if not peer_recvs or any(recv.peer in {send.rank, None} for recv in peer_recvs):
            continue
        recv = peer_recvs[0]
        if any((other.rank, other.peer) == (recv.peer, recv.rank) for other in sends):
            # The sender expected by this receive does send to it, so `send` belongs to a different exchange.
            continue
        return world.diagnosis(
            "unmatched",
            f"The peers differ: rank {send.rank} sends to rank {recv.rank}{at(send)}, but rank {recv.rank} "
            f"receives from rank {recv.peer}{at(recv)}.",
            "A receive must use the number of the sending rank. In a ring, a rank that sends to "
            "rank + 1 "
            "receives from rank - 1.",
            (send.rank, recv.rank),
        )
    return None


@cause("cycle", Priority.CYCLE)
def find_cycle(world: StuckWorld) -> Diagnosis | None:
    """Follow `waits_for` until a rank repeats."""
    for start in world.waits:
        path = [start.rank]
        while True:
            targets = world.waits[path[-1]].waits_for
            if not targets or targets[0] >= len(world.waits):
                break
            if targets[0] in path:
                cycle = path[path.index(targets[0]) :]
                return _describe_cycle(cycle, world)
            path.append(targets[0])
    return None


def _describe_cycle(cycle: list[int], world: StuckWorld) -> Diagnosis:
    ops = {wait.event.op for wait in world.call_waits if wait.rank in cycle}
    chain = " -> ".join(str(rank) for rank in [*cycle, cycle[0]])
    if len(cycle) == 1:
        summary = f"Rank {cycle[0]} waits for itself."
        advice = _TO_ITSELF_ADVICE
    elif ops == {"send"}:
        summary = f"A cycle of sends: each rank waits until the next one receives ({chain})."
        advice = (
            "A send returns when its peer receives: let one rank of each pair receive first, or start the "
            "sends with isend and wait for them after the receives."
        )
        if calls := _find_unpaired_call(cycle, world, "recv"):
            recv, facing = calls[0], _describe_facing_calls(*calls)
            summary += f" Rank {recv.rank} is receiving a message that is never sent: {facing}."
            advice = _MATCHING_ADVICE
    elif ops == {"recv"}:
        summary = (
            f"A cycle of receives: each rank waits for a message that no rank has sent ({chain})."
        )
        advice = "Let at least one rank send before it receives, or leave out a receive that no rank answers."
        if calls := _find_unpaired_call(cycle, world, "send"):
            send, facing = calls[0], _describe_facing_calls(*calls)
            summary = (
                f"A cycle of receives: each rank waits for a message that is never sent ({chain}). "
                f"Rank {send.rank} is sending a message that is never received: {facing}."
            )
            advice = _MATCHING_ADVICE
    else:
        summary = f"A cycle: each rank waits for the next one ({chain})."
        advice = "Reorder the calls on one of these ranks so that each call meets its counterpart."
        collectives = sorted(ops - {"send", "recv"})
        if collectives and len(collectives) < len(ops):
            # reordering cannot help without a counterpart, for example if one rank receives and another
            # broadcasts
            names = " or ".join(collectives)
            advice = (
                f"Each call needs its counterpart: {names} on all ranks of the group, a recv for "
                f"each send. Add the missing call, or reorder the calls on one of these ranks."
            )
    return world.diagnosis("cycle", summary, advice, tuple(cycle))


_MATCHING_ADVICE = (
    "A send and its receive must name each other, with the same tag (0 if none is given): compare the two "
    "lines. If they belong to different messages, change the order of the calls."
)


def _find_unpaired_call(cycle: list[int], world: StuckWorld, op: str) -> tuple[Event, Event] | None:
    """Return a call without a counterpart, and the call in which its peer is waiting instead.

    The first call is an asynchronous call of the kind `op` between two ranks of the cycle.
    """
    paired = {
        (end.rank, end.seq)
        for message in world.trace.messages()
        if message.recv is not None
        for end in (message.send, message.recv)
    }
    waiting_calls = {wait.rank: wait.event for wait in world.call_waits if wait.rank in cycle}
    for call in (call for rank in cycle for call in world.states[rank].pending):
        if call.op == op and call.peer in waiting_calls and (call.rank, call.seq) not in paired:
            return call, waiting_calls[call.peer]
    return None


def _describe_facing_calls(call: Event, peer_call: Event) -> str:
    prepositions = {"send": "to", "recv": "from"}
    peer = peer_call.rank
    other = "any rank" if peer_call.peer is None else f"rank {peer_call.peer}"
    return (
        f"{call.call} {prepositions[call.op]} rank {peer} {describe_tag(call)}{at(call)}, while rank {peer} "
        f"is in {peer_call.call} {prepositions[peer_call.op]} {other} "
        f"{describe_tag(peer_call)}{at(peer_call)}"
    )
