"""Follow a world from its start until it has completed, failed, deadlocked or run out of time.

The launcher and `%%ranks` call `monitor_world`, which asks the `DeadlockDetector` for deadlocks.
"""

from __future__ import annotations

import signal
import time

from helpers.ranks.budget import Budget, rank_pids
from helpers.ranks.deadlock_watch import (
    LOOK_INTERVAL_S,
    DeadlockDetector,
    current_waits,
    explain_timeout,
)
from helpers.ranks.display import NoDisplay
from helpers.ranks.failures import (
    Deadlock,
    HostLost,
    RankDied,
    RankError,
    RankFailed,
    RankTimeout,
    is_consequence,
)
from helpers.ranks.run import RankFailure
from helpers.ranks.world import Member, World
from helpers.trace.causes_different_calls import explain_mismatch
from helpers.trace.departure import find_departure
from helpers.trace.events import Event
from helpers.trace.joins import find_join_problem

# Time for the other ranks to report their errors after a failure.
GRACE_PERIOD_S = 1.0
# The time for this if rank 0 is in monitored_barrier, which still asks the other ranks one by one, to find
# the missing ones.
MONITORED_GRACE_PERIOD_S = 3.0
# Time for ranks to report their position when their budget is used up.
_FINAL_REPORT_S = 0.5


def monitor_world(world: World, timeout: float, display: NoDisplay) -> RankFailure | None:
    """Poll a world until its ranks have answered. Return the failure if they did not all succeed."""
    start = time.monotonic()
    detector = DeadlockDetector(world, min(timeout, world.options.horizon_s))
    try:
        return _poll_until_done(world, timeout, display, detector, start)
    except KeyboardInterrupt:
        # The ranks keep running until this exception leaves the launch, so they can still report their
        # position.
        world.ask_status_and_wait(_FINAL_REPORT_S)
        display.show_stopped(world, detector, time.monotonic() - start)
        raise


def _poll_until_done(
    world: World, timeout: float, display: NoDisplay, detector: DeadlockDetector, start: float
) -> RankFailure | None:
    servers = world.connection
    budget = Budget(lambda: rank_pids(world), timeout, start, servers.times, servers.cores)
    next_look, deadline = start + LOOK_INTERVAL_S, float("inf")
    while True:
        if not all(member.is_done for member in world.members):  # they may answer during a look
            world.poll(max(0.0, min(next_look, deadline) - time.monotonic()))
        # Read the clock after the wait, so that answers received meanwhile count before any deadline.
        now = time.monotonic()
        if all(member.is_done for member in world.members) or world.server_exited:
            return failure_of(world, detector)
        if not world.options.keep_others_running and _has_failed(world):
            deadline = min(deadline, now + _grace_period(world))
            if now >= deadline or _all_others_blocked(world):
                return failure_of(world, detector)
        if now < next_look:
            continue
        if budget.is_spent(now):
            world.ask_status_and_wait(_FINAL_REPORT_S)
            return failure_of(world, detector) or RankTimeout(
                timeout,
                current_waits(detector).waits,
                budget.by_the_clock,
                world.hosts,
                budget.was_computing,
                now - start,
                explain_timeout(detector),
                [member.rank for member in world.members if member.state == "returned"],
            )
        diagnosis = detector.diagnose_now(now)
        if diagnosis is not None:
            return failure_of(world, detector) or Deadlock(diagnosis, world.hosts)
        next_look = now + detector.next_look_s
        display.update(world, detector, now - start)


def _has_failed(world: World) -> bool:
    return any(member.state in {"failed", "died"} for member in world.members)


def _blocked_calls(world: World) -> list[Event | None]:
    """Return the call in which each unfinished rank is blocked, or None."""
    world.read_logs()
    return [
        world.collector.blocking_call(member.rank) for member in world.members if not member.is_done
    ]


def _grace_period(world: World) -> float:
    """Return the time, in seconds, for the other ranks to report their failures after the first failure."""
    return max(
        (MONITORED_GRACE_PERIOD_S for event in _blocked_calls(world) if _is_monitored(event)),
        default=GRACE_PERIOD_S,
    )


def _all_others_blocked(world: World) -> bool:
    """Return whether all unfinished ranks have been blocked in a call for 150 ms, so none will continue."""
    latest_start_ns = time.monotonic_ns() - 150_000_000
    return all(
        event is not None and event.start_ns < latest_start_ns and not _is_monitored(event)
        for event in _blocked_calls(world)
    )


def _is_monitored(event: Event | None) -> bool:
    return event is not None and event.call == "monitored_barrier"


# Find the first failure. Later errors of other ranks are consequences, not causes.

_SIGNAL_ADVICE = {
    "SIGSEGV": "Native code accessed invalid memory (a segmentation fault).",
    "SIGKILL": "The process was killed from outside, possibly by the kernel because memory ran out.",
    "SIGABRT": "Native code aborted: torch and gloo do this when a check in C++ fails.",
    "SIGTERM": "The process was asked from outside to terminate.",
    "SIGALRM": "A timer of signal.alarm or signal.setitimer expired, and no handler was set for SIGALRM.",
    "SIGBUS": "Native code accessed memory that no longer exists: /dev/shm may be full, or a mapped file "
    "has become shorter.",
    "SIGILL": "Native code contains an instruction that this processor doesn't have.",
    "SIGFPE": "Native code divided an integer by zero.",
}


def failure_of(world: World, detector: DeadlockDetector) -> RankFailure | None:
    """Return the root cause of a world that failed, or None if it succeeded."""
    world.read_logs()  # The records contain a dead rank's last call.
    errors = sorted(
        (member.error for member in world.members if member.error is not None),
        key=lambda error: error.when_ns,
    )
    errors = _move_lowest_rank_first(errors)
    dead = sorted(
        (member for member in world.members if member.state == "died"),
        key=lambda member: member.ended_ns,
    )
    causes: list[RankError] = [
        error for error in errors if not (dead or len(errors) > 1) or not is_consequence(error)
    ]
    if causes and not (dead and dead[0].ended_ns < causes[0].when_ns):
        consequences = tuple(error for error in errors if error is not causes[0])
        return _failed(world, causes[0], consequences)
    if dead:
        return (
            _host_lost_failure(detector, dead[0])
            if dead[0].host_loss
            else _died_failure(world, dead[0])
        )
    if errors:
        return _failed(world, errors[0], tuple(errors[1:]))
    if world.server_exited:
        return _server_exit_failure(world)
    return None


def _failed(world: World, error: RankError, consequences: tuple[RankError, ...]) -> RankFailed:
    """Return the failure of a rank that raised an exception, and its cause if the other ranks show it."""
    explanation = ""
    if error.joins is not None:
        explanation = _explain_failed_join(world, error)
    elif is_consequence(error):
        returned = {member.rank for member in world.members if member.state == "returned"}
        departure = find_departure(world.collector.trace_for_diagnosis(), returned)
        explanation = f"{departure.summary} {departure.advice}" if departure is not None else ""
    return RankFailed(error, consequences, world.hosts, explanation)


def _explain_failed_join(world: World, error: RankError) -> str:
    """Explain an error of init_process_group by the numbers passed by the ranks; "" if they are right."""
    if not all(member.is_done for member in world.members):
        world.ask_status_and_wait(_FINAL_REPORT_S)
    joins = {
        member.rank: call
        for member in world.members
        if (call := member.error.joins if member.error is not None else member.status.joins)
    }
    problem = find_join_problem(joins, len(world.members))
    return f"{problem.summary} {problem.advice}" if problem is not None else ""


def _move_lowest_rank_first(errors: list[RankError]) -> list[RankError]:
    """If several ranks failed like the first one, move the error of the lowest of them to the front."""
    if errors:
        same = [
            error
            for error in errors
            if (error.kind, error.frames) == (errors[0].kind, errors[0].frames)
        ]
        first = min(same, key=lambda error: error.rank)
        return [first, *(error for error in errors if error is not first)]
    return errors


def _died_failure(world: World, member: Member) -> RankDied:
    code = member.exitcode or 0
    name = _signal_name(-code) if code < 0 else ""
    if name:
        advice = _SIGNAL_ADVICE.get(name, "A signal terminated the process.")
        if name == "SIGABRT":
            advice = _abort_advice(world) or advice
    else:
        advice = "The function did not return: os._exit() and similar calls end a rank immediately."
    frames = world.fault_frames(member.rank)
    if frames:
        advice += f"\n  it was at {frames[-1]}: {frames[-1].source.strip()}"
    return RankDied(member.rank, name, code, advice, world.hosts)


def _host_lost_failure(detector: DeadlockDetector, member: Member) -> HostLost:
    world = detector.world
    host = world.hosts[member.rank]
    lost_ranks = [
        other.rank for other in world.members if other.host_loss and world.hosts[other.rank] == host
    ]
    waits = [wait for wait in current_waits(detector).waits if wait.rank not in lost_ranks]
    return HostLost(host, lost_ranks, member.host_loss, waits, world.hosts)


def _abort_advice(world: World) -> str:
    mismatch = explain_mismatch(world.collector.trace_for_diagnosis())
    if not mismatch:
        return ""
    return f"gloo aborts a process that receives a message of an unexpected size: {mismatch}"


def _server_exit_failure(world: World) -> RankDied:
    first = next(member for member in world.members if not member.is_done)
    failure = RankDied(
        first.rank,
        "SIGKILL",
        -int(signal.SIGKILL),
        "The rank server was killed from outside, together with all ranks. Run the cell again: a new "
        "server starts automatically.",
    )
    failure.server_exited = True
    return failure


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"
