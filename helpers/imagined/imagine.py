"""imagine(): run single ranks of a world that is larger than the machine.

    fn, 1024, ranks=[0, 517] -> a launch of 2 processes, each of them one rank (in_rank.py) -> Run

Nothing is sent and no call waits, so the other ranks are not needed. Everything else is as with `launch`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from helpers.ranks.cells import in_kernel, own_cells
from helpers.ranks.display import Display, NoDisplay
from helpers.ranks.failures import LaunchError, RankDied, RankFailed, RankTimeout
from helpers.ranks.launcher import run_on_ranks, shorten_stop
from helpers.ranks.options import Options
from helpers.ranks.payload import check_call
from helpers.ranks.run import RankFailure, Run
from helpers.ranks.settings import read_settings
from helpers.trace.events import Event, Trace

MOST_RANKS, LARGEST_WORLD = 16, 1 << 17


def imagine(
    fn: Callable[..., Any],
    world_size: int,
    ranks: Sequence[int] = (0,),
    *,
    args: Sequence[Any] = (),
    per_host: int = 8,
    real_tensors: bool = False,
    timeout: float = 60.0,
) -> Run:
    """Call `fn(rank, world_size, *args)` for each of `ranks`, in a world of which only these exist.

    Each rank is a separate process whose default process group has `world_size` members. Collectives are
    recorded but move nothing. Tensors have shapes but neither values nor memory, so that a model of any size
    fits. Such a Run shows the real calls, peers, bytes, shapes and memory, but no values and no times.

    Args:
        fn: The function to run.
        world_size: The size of the imagined world.
        ranks: The ranks to run.
        args: Arguments that are the same on every rank.
        per_host: How many ranks each machine has, for LOCAL_RANK.
        real_tensors: If True, tensors have memory and values, for small programs that need some (DDP,
            `.item()`). A collective does not compute in them what a real one would.
        timeout: The time that everything may take, in seconds.

    Returns:
        A Run in which `run.values[rank]` is what the rank returned, with its tensors described.

    Raises:
        LaunchError: The arguments do not describe a world.
        RankFailure: As with `launch`.
    """
    # It imports torch, for which a kernel's first cell should not wait.
    from helpers.imagined.in_rank import World, drive

    named = _checked(world_size, ranks, per_host)
    check_call(fn, world_size, args, [()])
    display = Display() if in_kernel() else NoDisplay()
    options = Options(len(named), None, timeout, init=False, imagined=world_size, own_temp=False)
    world = World(world_size, named, per_host, real_tensors)
    with shorten_stop(len(named)):
        settings = read_settings(*own_cells())
        run = run_on_ranks(
            drive, options, args=(world, fn, tuple(args)), settings=settings, display=display
        )
    run = _renamed(run, world_size, named)
    if run.failure is not None:
        display.show_failed(run)
        raise run.failure
    display.show_at_end(run)
    return run


def _checked(world_size: int, ranks: Sequence[int], per_host: int) -> tuple[int, ...]:
    if not _whole(world_size, 1, LARGEST_WORLD):
        raise LaunchError(
            f"world_size must be a whole number from 1 to {LARGEST_WORLD:,}; got {world_size!r}."
        )
    if not _whole(per_host, 1, LARGEST_WORLD):
        raise LaunchError(f"per_host must be a positive whole number; got {per_host!r}.")
    named = tuple(ranks) if isinstance(ranks, Sequence) else (ranks,)
    if not 1 <= len(named) <= MOST_RANKS or len(set(named)) < len(named):
        raise LaunchError(
            f"ranks must be 1 to {MOST_RANKS} different ranks, such as ranks=[0, {world_size - 1}]; "
            f"got {len(named)}. The others are only imagined."
        )
    for rank in named:
        if not _whole(rank, 0, world_size - 1):
            raise LaunchError(
                f"rank {rank!r} is not in a world of {world_size:,}: its ranks are 0 to {world_size - 1:,}."
            )
    return tuple(sorted(named))


def _whole(number: object, least: int, most: int) -> bool:
    return type(number) is int and least <= number <= most


def _renamed(run: Run, world_size: int, ranks: tuple[int, ...]) -> Run:
    """Return the run with its processes renamed to ranks of the imagined world."""
    values: list[Any] = [None] * world_size
    output = [""] * world_size
    for process, rank in enumerate(ranks):
        values[rank], output[rank] = run.values[process], run.output[process]
    events: list[Event] = []
    for process, rank in enumerate(ranks):
        events += _steps(run.trace.of(process), rank)
    trace = Trace(world_size, tuple(events), run.trace.dropped, run.trace.groups, ranks)
    those = f"rank {ranks[0]:,}" if len(ranks) == 1 else f"ranks {', '.join(map(str, ranks))}"
    note = f"{those} of {world_size:,}, imagined: no values, no times"
    failure = _renamed_failure(run.failure, ranks)
    whole = Run(world_size, values, output, trace, failure, "fake", run.seconds, (note, *run.notes))
    if failure is not None:
        failure.run = whole
    return whole


def _steps(events: Sequence[Event], rank: int) -> list[Event]:
    """Return a rank's events with step numbers in place of times, because nothing was timed."""
    moments = {m for e in events for m in (e.start_ns, e.wait_ns, e.end_ns) if m is not None}
    step = {moment: number for number, moment in enumerate(sorted(moments))}
    return [
        replace(
            event,
            rank=rank,
            start_ns=step[event.start_ns],
            wait_ns=None if event.wait_ns is None else step[event.wait_ns],
            end_ns=None if event.end_ns is None else step[event.end_ns],
        )
        for event in events
    ]


def _renamed_failure(failure: RankFailure | None, ranks: tuple[int, ...]) -> RankFailure | None:
    if isinstance(failure, RankFailed):
        errors = [replace(e, rank=ranks[e.rank]) for e in (failure.error, *failure.consequences)]
        return RankFailed(errors[0], tuple(errors[1:]))
    if isinstance(failure, RankDied):
        return RankDied(ranks[failure.rank], failure.signal, failure.exitcode, failure.advice)
    if isinstance(failure, RankTimeout):
        waits = tuple(replace(wait, rank=ranks[wait.rank]) for wait in failure.waits)
        return RankTimeout(
            failure.timeout_s, waits, failure.by_the_clock, elapsed_s=failure.elapsed_s
        )
    return failure
