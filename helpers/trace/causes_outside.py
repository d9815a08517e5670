"""Find ranks that wait outside of recorded calls: for a key, a file lock, or in the learner's code."""

from __future__ import annotations

from helpers.trace.cause import Priority, cause
from helpers.trace.events import Diagnosis
from helpers.trace.mismatch import at
from helpers.trace.waits import StuckWorld
from helpers.trace.wording import name_keys

_OWN_CODE_ADVICE = (
    "Look at the line of each rank for a lock that is never released, a queue that stays empty, or a "
    "thread that never ends."
)


@cause("missing key", Priority.WRONG_LINE)
def find_missing_key(world: StuckWorld) -> Diagnosis | None:
    """Find a rank that waits for a store's key, although no rank can set it any more."""
    for state in world.states:
        if not state.ended and state.keys:
            where = f" ({state.at})" if state.at else ""
            return world.diagnosis(
                "missing_key",
                f"Rank {state.rank} waits in {state.inside}{where} for {name_keys(state.keys)}, which no "
                "rank has set or will set.",
                "Check that the rank that sets the key reaches that line, and that both ranks spell "
                "the key in the same way. A PrefixStore puts its prefix before each key.",
                (state.rank,),
            )
    return None


@cause("file lock", Priority.WRONG_LINE, certain=True)
def find_file_lock(world: StuckWorld) -> Diagnosis | None:
    """Find a rank that waits for a file lock whose holder is blocked as well."""
    for state in world.states:
        for holder in () if state.ended else state.lockers:
            holder_wait = world.waits[holder]
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
            return world.diagnosis(
                "file_lock",
                f"Rank {state.rank} waits{where} for a file lock held by rank "
                f"{holder}{holder_text}.",
                "Release the lock before a call that waits for other ranks: end the `with` block, unlock the "
                "file, or commit the transaction first.",
                (holder,),
            )
    return None


@cause("blocked ranks", Priority.UNRECORDED)
def find_blocked_ranks(world: StuckWorld) -> Diagnosis | None:
    """Return a diagnosis if every rank is blocked in the learner's code, and None otherwise."""
    if world.call_waits or any(state.inside for state in world.states):
        return None
    return world.diagnosis(
        "stuck",
        "All ranks are blocked: each rank waits in its own code, and no thread can unblock it.",
        _OWN_CODE_ADVICE,
    )


@cause("blocked peer", Priority.BLOCKED_PEER)
def find_blocked_peer(world: StuckWorld) -> Diagnosis | None:
    """Find an awaited rank that is blocked in the learner's code instead of calling the waiting ranks."""
    for wait in world.call_waits:
        for rank in wait.waits_for:
            other = next((state for state in world.states if state.rank == rank), None)
            if other is None or other.ended or other.inside or other.blocked:
                continue
            where = f" at {other.at}" if other.at else ""
            return world.diagnosis(
                "stuck",
                f"Rank {rank} is blocked in its own code{where}, and no thread can unblock it. Rank "
                f"{wait.rank} waits for it in {wait.call}{at(wait.event)}.",
                _OWN_CODE_ADVICE,
                (rank,),
            )
    return None
