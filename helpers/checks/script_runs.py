"""Make a Run for a script's ranks from the report of a script exercise.

`grade` calls this in the launching process, on the report of the one rank that ran the script. A hostile
answer may have written this plain data, so only its types are trusted.
"""

from __future__ import annotations

import signal
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from helpers.ranks.cells import is_learner_file
from helpers.ranks.failures import RankDied, RankError, RankFailed, RankTimeout, is_consequence
from helpers.ranks.run import RankFailure, Run
from helpers.trace.events import OtherWait, Place, Wait

_MAX_REPLACED_NAMES = 20
PlaceFinder = Callable[[str, int, str], Place]


def make_script_run(world_size: int, seconds: float, run: Run, find_place: PlaceFinder) -> Run:
    """Return the Run of a script's ranks, made from the Run of the one rank that launched it.

    seconds: the case's limit.
    """
    report = run.values[0]
    # the rank that should have started the script has failed, so its failure explains everything
    if run.failure is not None or not isinstance(report, Mapping):
        empty: list[Any] = [None] * world_size
        return replace(
            run,
            world_size=world_size,
            values=empty,
            output=[*run.output, *[""] * (world_size - 1)],
        )
    values = _fit_to_length(report.get("values"), world_size)
    output = [
        str(text) if text else "" for text in _fit_to_length(report.get("output"), world_size)
    ]
    replaced = [
        name
        for name in _fit_to_length(report.get("replaced"), _MAX_REPLACED_NAMES)
        if isinstance(name, str)
    ]
    script_run = replace(
        run,
        world_size=world_size,
        values=values,
        output=output,
        failure=None,
        backend="gloo",
        replaced=(*run.replaced, *replaced),
    )
    failure = _find_failure(world_size, seconds, report, find_place)
    if failure is not None:
        script_run = replace(script_run, failure=failure)
        failure.run = script_run
    return script_run


def _find_failure(
    world_size: int, seconds: float, report: Mapping[Any, Any], find_place: PlaceFinder
) -> RankFailure | None:
    errors = [
        _make_error(rank, error, find_place)
        for rank, error in enumerate(_fit_to_length(report.get("errors"), world_size))
        if isinstance(error, Mapping)
    ]
    errors.sort(key=lambda error: (is_consequence(error), error.when_ns))
    # If other workers waited for a failed worker until the timeout, the failed worker is the cause.
    if errors and not is_consequence(errors[0]):
        return RankFailed(errors[0], tuple(errors[1:]))
    if report.get("late"):
        limit = report.get("seconds")  # the driver's limit, which is shorter than the case's
        return RankTimeout(
            limit if isinstance(limit, (int, float)) else seconds,
            _find_waits(report, find_place),
            bool(report.get("by_the_clock")),
            was_computing=bool(report.get("was_computing")),
        )
    # No exception was recorded, so only the process's exit code or signal is known. The launcher uses
    # SIGTERM to end processes that wait for a failed rank.
    exits = report.get("exits")
    codes = exits.items() if isinstance(exits, Mapping) else ()
    reported_ranks = {error.rank for error in errors}  # these ranks have reported why they ended
    for rank, code in sorted(codes):
        if (
            isinstance(code, int)
            and code
            and -code != signal.SIGTERM
            and rank not in reported_ranks
        ):
            name = signal.Signals(-code).name if -code in set(signal.Signals) else ""
            return RankDied(
                int(rank), name, code, "The worker's process ended without an error message."
            )
    if errors:
        return RankFailed(errors[0], tuple(errors[1:]))
    return None


def _find_waits(report: Mapping[Any, Any], find_place: PlaceFinder) -> tuple[Wait, ...]:
    """Return, for each rank that had not ended, the learner's line at which it was blocked."""
    frames_by_rank = report.get("stands")
    waits = []
    for rank, frames in frames_by_rank.items() if isinstance(frames_by_rank, Mapping) else ():
        if isinstance(rank, int) and (own_lines := _learner_lines(frames, find_place)):
            source = f": {own_lines[-1].source.strip()}" if own_lines[-1].source else ""
            waits.append(OtherWait(rank, f"{own_lines[-1]}, in {own_lines[-1].function}{source}"))
    return tuple(sorted(waits, key=lambda wait: wait.rank))


def _learner_lines(frames: Any, find_place: PlaceFinder) -> list[Place]:
    """Return the learner's lines in a rank's report."""
    return [
        find_place(str(frame[0]), int(frame[1]), str(frame[2]))
        # a hostile report may be endless, with parts of any type
        for frame in (frames[-60:] if isinstance(frames, list) else [])
        if isinstance(frame, list) and len(frame) == 3 and isinstance(frame[1], int)
        if is_learner_file(str(frame[0]))
    ]


def _make_error(rank: int, error_report: Mapping[Any, Any], find_place: PlaceFinder) -> RankError:
    own_lines = _learner_lines(error_report.get("frames"), find_place)
    when = error_report.get("when_ns")
    return RankError(
        rank,
        str(error_report.get("kind"))[:200],
        str(error_report.get("message"))[:20_000],
        tuple(own_lines[-8:]),
        when if isinstance(when, int) else 0,
    )


def _fit_to_length(value: Any, length: int) -> list[Any]:
    values = list(value) if isinstance(value, (list, tuple)) else []
    return [*values[:length], *[None] * (length - len(values))]
