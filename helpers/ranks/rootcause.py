"""Which failure came first? What other ranks say after it is a consequence, not a cause."""

from __future__ import annotations

import signal

from helpers.ranks.failures import RankDied, RankError, RankFailed, is_consequence
from helpers.ranks.run import RankFailure
from helpers.ranks.world import Member, World
from helpers.trace.mismatch import mismatch_in

_ADVICE = {
    "SIGSEGV": "Native code read memory that is not its own.",
    "SIGKILL": "Somebody, or the kernel for want of memory, ended the process from outside.",
    "SIGABRT": "Native code gave up; torch and gloo do so when a check in C++ fails.",
    "SIGTERM": "Somebody asked the process to end.",
}


def failure_of(world: World) -> RankFailure | None:
    """Return the root cause of a world that did not end well, or None if it did."""
    world.read_logs()  # what a rank that died was in stands there
    errors = sorted(
        (member.error for member in world.members if member.error is not None),
        key=lambda error: error.when_ns,
    )
    errors = _lowest_first_where_alike(errors)
    dead = sorted((m for m in world.members if m.state == "died"), key=lambda m: m.ended_ns)
    causes = [
        error for error in errors if not (dead or len(errors) > 1) or not is_consequence(error)
    ]
    if causes and not (dead and dead[0].ended_ns < causes[0].when_ns):
        rest = tuple(error for error in errors if error is not causes[0])
        return RankFailed(causes[0], rest)
    if dead:
        return _death(world, dead[0])
    if errors:
        return RankFailed(errors[0], tuple(errors[1:]))
    if world.server_gone:
        return _server_went(world)
    return None


def _lowest_first_where_alike(errors: list[RankError]) -> list[RankError]:
    """Put the lowest rank in front of ranks that raised the same: which was first is chance."""
    if errors:
        alike = [e for e in errors if (e.kind, e.frames) == (errors[0].kind, errors[0].frames)]
        first = min(alike, key=lambda error: error.rank)
        return [first, *(e for e in errors if e is not first)]
    return errors


def _death(world: World, member: Member) -> RankDied:
    code = member.exitcode or 0
    name = _signal_name(-code) if code < 0 else ""
    if name:
        advice = _ADVICE.get(name, "A signal ended the process.")
        if name == "SIGABRT":
            advice = _abort_advice(world) or advice
    else:
        advice = "It left without returning: os._exit() and the like end a rank at once."
    frames = world.fault_frames(member.rank)
    if frames:
        advice += f"\n  it was at {frames[-1]}: {frames[-1].source.strip()}"
    return RankDied(member.rank, name, code, advice)


def _abort_advice(world: World) -> str:
    mismatch = mismatch_in(world.collector.trace())
    if not mismatch:
        return ""
    return f"gloo ends a process whose peer sends another size than it expects: {mismatch}"


def _server_went(world: World) -> RankDied:
    first = next(member for member in world.members if not member.done)
    return RankDied(
        first.rank,
        "SIGKILL",
        -int(signal.SIGKILL),
        "The rank server was ended from outside, and all ranks with it. "
        "Run the cell again: a new server starts by itself.",
    )


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"
