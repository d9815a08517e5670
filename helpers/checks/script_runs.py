"""Make a Run of a script's own ranks from the report of a script exercise.

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
from helpers.trace.events import Place, Wait

_MOST_NAMES = 20
NamePlace = Callable[[str, int, str], Place]


def run_of_script(world_size: int, seconds: float, run: Run, name_place: NamePlace) -> Run:
    """Return the Run of a script's ranks, made from the Run of the one rank that launched it.

    seconds: the case's limit.
    """
    said = run.values[0]
    # the rank that was to start the script has itself failed, so its failure explains everything
    if run.failure is not None or not isinstance(said, Mapping):
        empty: list[Any] = [None] * world_size
        return replace(
            run,
            world_size=world_size,
            values=empty,
            output=[*run.output, *[""] * (world_size - 1)],
        )
    values = _list(said.get("values"), world_size)
    output = [str(text) if text else "" for text in _list(said.get("output"), world_size)]
    replaced = [name for name in _list(said.get("replaced"), _MOST_NAMES) if isinstance(name, str)]
    made = replace(
        run,
        world_size=world_size,
        values=values,
        output=output,
        failure=None,
        backend="gloo",
        replaced=(*run.replaced, *replaced),
    )
    failure = _failure(world_size, seconds, said, name_place)
    if failure is not None:
        made = replace(made, failure=failure)
        failure.run = made
    return made


def _failure(
    world_size: int, seconds: float, said: Mapping[Any, Any], name_place: NamePlace
) -> RankFailure | None:
    errors = [
        _error(rank, error, name_place)
        for rank, error in enumerate(_list(said.get("errors"), world_size))
        if isinstance(error, Mapping)
    ]
    errors.sort(key=lambda error: (is_consequence(error), error.when_ns))
    # If other workers waited for a failed one until the timeout, the failed one is the cause.
    if errors and not is_consequence(errors[0]):
        return RankFailed(errors[0], tuple(errors[1:]))
    if said.get("late"):
        limit = said.get("seconds")  # the driver's own limit, which is shorter than the case's
        return RankTimeout(
            limit if isinstance(limit, (int, float)) else seconds,
            _waits(said, name_place),
            bool(said.get("by_the_clock")),
            was_computing=bool(said.get("was_computing")),
        )
    # No exception was recorded, so only the way in which the process ended is known. The launcher uses
    # SIGTERM to end processes that wait for a failed rank.
    exits = said.get("exits")
    codes = exits.items() if isinstance(exits, Mapping) else ()
    told = {error.rank for error in errors}  # these have reported why they ended
    for rank, code in sorted(codes):
        if isinstance(code, int) and code and -code != signal.SIGTERM and rank not in told:
            name = signal.Signals(-code).name if -code in set(signal.Signals) else ""
            return RankDied(
                int(rank), name, code, "The worker's process ended without an error message."
            )
    if errors:
        return RankFailed(errors[0], tuple(errors[1:]))
    return None


def _waits(said: Mapping[Any, Any], name_place: NamePlace) -> tuple[Wait, ...]:
    """Return for each rank that had not ended the learner's line at which it was blocked."""
    stands = said.get("stands")
    found = []
    for rank, frames in stands.items() if isinstance(stands, Mapping) else ():
        if isinstance(rank, int) and (own := _own(frames, name_place)):
            source = f": {own[-1].source.strip()}" if own[-1].source else ""
            found.append(Wait(rank, f"{own[-1]}, in {own[-1].function}{source}"))
    return tuple(sorted(found, key=lambda wait: wait.rank))


def _own(frames: Any, name_place: NamePlace) -> list[Place]:
    """Return the learner's own lines in what a rank reported."""
    return [
        name_place(str(frame[0]), int(frame[1]), str(frame[2]))
        # a hostile report may be endless, and its parts may be anything
        for frame in (frames[-60:] if isinstance(frames, list) else [])
        if isinstance(frame, list) and len(frame) == 3 and isinstance(frame[1], int)
        if is_learner_file(str(frame[0]))
    ]


def _error(rank: int, said: Mapping[Any, Any], name_place: NamePlace) -> RankError:
    own = _own(said.get("frames"), name_place)
    when = said.get("when_ns")
    return RankError(
        rank,
        str(said.get("kind"))[:200],
        str(said.get("message"))[:20_000],
        tuple(own[-8:]),
        when if isinstance(when, int) else 0,
    )


def _list(value: Any, length: int) -> list[Any]:
    found = list(value) if isinstance(value, (list, tuple)) else []
    return [*found[:length], *[None] * (length - len(found))]
