"""imagine(): run single ranks of a world larger than the machine.

    fn, 1024, ranks=[0, 517] -> a launch of 2 processes, each of them one rank (in_rank.py) -> Run

Because no data is sent and no call waits, the other ranks are not needed. Everything else works as with
`launch`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from helpers.ranks.carried_settings import read_settings
from helpers.ranks.cells import in_kernel, learner_cells
from helpers.ranks.display import Display, NoDisplay
from helpers.ranks.failures import LaunchError, RankDied, RankFailed, RankTimeout
from helpers.ranks.launch_options import Options
from helpers.ranks.launcher import raise_as_stopped, run_on_ranks
from helpers.ranks.payload import check_call
from helpers.ranks.run import RankFailure, Run
from helpers.trace.events import Event, Trace

MAX_RANKS, MAX_WORLD_SIZE = 16, 1 << 17


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
    """Call `fn(rank, world_size, *args)` for each of `ranks`, in a world without the other ranks.

    Each rank is a separate process whose default process group has `world_size` members. Collectives are
    recorded but move no data. Tensors have shapes but neither values nor memory, so that a model of any size
    fits. The Run shows the real calls, peers, bytes, shapes and memory, but no values and no times.

    Args:
        fn: The function to run.
        world_size: The size of the imagined world.
        ranks: The ranks to run.
        args: Arguments that are the same on every rank.
        per_host: Number of ranks on each machine, for LOCAL_RANK.
        real_tensors: If True, tensors have memory and values, for small programs that need them (DDP,
            `.item()`). The results still differ from those of real collectives.
        timeout: The time limit for the whole run, in seconds.

    Returns:
        A Run in which `run.values[rank]` is the rank's return value, with descriptions instead of tensors.

    Raises:
        LaunchError: The arguments do not describe a world.
        RankFailure: As with `launch`.
    """
    # Import this late, because it imports torch, and a kernel's first cell should not wait for torch.
    from helpers.imagined.in_rank import ImaginedWorld, run_as_rank

    chosen_ranks = _check_arguments(world_size, ranks, per_host)
    check_call(fn, world_size, args, [()])
    display = Display() if in_kernel() else NoDisplay()
    options = Options(
        len(chosen_ranks), None, timeout, init=False, imagined=world_size, own_temp=False
    )
    world = ImaginedWorld(world_size, chosen_ranks, per_host, real_tensors)
    with raise_as_stopped(len(chosen_ranks)):
        settings = read_settings(*learner_cells())
        run = run_on_ranks(
            run_as_rank, options, args=(world, fn, tuple(args)), settings=settings, display=display
        )
    run = _rename_ranks(run, world_size, chosen_ranks)
    if run.failure is not None:
        display.show_failed(run)
        raise run.failure
    display.show_at_end(run)
    return run


def _check_arguments(world_size: int, ranks: Sequence[int], per_host: int) -> tuple[int, ...]:
    if not _is_whole_number(world_size, 1, MAX_WORLD_SIZE):
        raise LaunchError(
            f"world_size must be a whole number from 1 to {MAX_WORLD_SIZE:,}; got {world_size!r}."
        )
    if not _is_whole_number(per_host, 1, MAX_WORLD_SIZE):
        raise LaunchError(f"per_host must be a positive whole number; got {per_host!r}.")
    chosen_ranks = tuple(ranks) if isinstance(ranks, Sequence) else (ranks,)
    if not 1 <= len(chosen_ranks) <= MAX_RANKS or len(set(chosen_ranks)) < len(chosen_ranks):
        raise LaunchError(
            f"ranks must be 1 to {MAX_RANKS} different ranks, such as ranks=[0, {world_size - 1}]; "
            f"got {len(chosen_ranks)}. The others are only imagined."
        )
    for rank in chosen_ranks:
        if not _is_whole_number(rank, 0, world_size - 1):
            raise LaunchError(
                f"rank {rank!r} is not in a world of {world_size:,}: its ranks are 0 to {world_size - 1:,}."
            )
    return tuple(sorted(chosen_ranks))


def _is_whole_number(number: object, minimum: int, maximum: int) -> bool:
    return type(number) is int and minimum <= number <= maximum


def _rename_ranks(run: Run, world_size: int, ranks: tuple[int, ...]) -> Run:
    """Return the run with its processes renamed to ranks of the imagined world."""
    values: list[Any] = [None] * world_size
    output = [""] * world_size
    for process, rank in enumerate(ranks):
        values[rank], output[rank] = run.values[process], run.output[process]
    events: list[Event] = []
    for process, rank in enumerate(ranks):
        events += _number_moments(run.trace.of(process), rank)
    trace = Trace(world_size, tuple(events), run.trace.dropped, run.trace.groups, ranks)
    ranks_text = f"rank {ranks[0]:,}" if len(ranks) == 1 else f"ranks {', '.join(map(str, ranks))}"
    note = f"{ranks_text} of {world_size:,}, imagined: no values, no times"
    failure = _rename_ranks_in_failure(run.failure, ranks)
    renamed_run = Run(
        world_size, values, output, trace, failure, "fake", run.seconds, (note, *run.notes)
    )
    if failure is not None:
        failure.run = renamed_run
    return renamed_run


def _number_moments(events: Sequence[Event], rank: int) -> list[Event]:
    """Return a rank's events with step numbers instead of times, because nothing was timed."""
    moments = {
        moment
        for event in events
        for moment in (event.start_ns, event.wait_ns, event.end_ns)
        if moment is not None
    }
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


def _rename_ranks_in_failure(
    failure: RankFailure | None, ranks: tuple[int, ...]
) -> RankFailure | None:
    if isinstance(failure, RankFailed):
        errors = [
            replace(error, rank=ranks[error.rank])
            for error in (failure.error, *failure.consequences)
        ]
        return RankFailed(errors[0], tuple(errors[1:]))
    if isinstance(failure, RankDied):
        return RankDied(ranks[failure.rank], failure.signal, failure.exitcode, failure.advice)
    if isinstance(failure, RankTimeout):
        waits = tuple(replace(wait, rank=ranks[wait.rank]) for wait in failure.waits)
        return RankTimeout(
            failure.timeout_s, waits, failure.by_the_clock, elapsed_s=failure.elapsed_s
        )
    return failure
