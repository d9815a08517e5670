"""Record the known state of real stuck worlds at the moment of their diagnosis, one JSON file each.

`PYTHONPATH=. python -m tests.trace.deadlocks.record [NAME ...]` runs programs from this file or from
`tests/ranks/stuck_programs.py`, and writes their files. Without names, it writes all existing files again.
`tests/trace/test_diagnosis.py` diagnoses the stored worlds, in milliseconds, without a rank.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import msgspec
import torch
import torch.distributed as dist

from helpers.ranks import deadlock_watch
from helpers.ranks.failures import Deadlock
from helpers.ranks.launcher import launch
from helpers.trace.diagnosis import diagnose
from helpers.trace.events import Diagnosis, Event, Trace
from helpers.trace.rank_state import RankState
from tests.ranks.stuck_programs import STUCK

FOLDER = Path(__file__).parent
Program = Callable[[int, int], object]


@dataclass(frozen=True)
class Stored:
    """A stuck world: the known state of each rank, and all their records."""

    states: tuple[RankState, ...]
    trace: Trace


def stored(name: str) -> Stored:
    return msgspec.json.decode((FOLDER / f"{name}.json").read_bytes(), type=Stored)


def one() -> torch.Tensor:
    return torch.ones(1)


def different_roots(rank: int, n: int) -> None:
    dist.broadcast(one(), rank)


def cycle_of_a_send_and_a_collective(rank: int, n: int) -> None:
    if rank == 0:
        dist.barrier()
    else:
        dist.send(one(), 0)


def isend_without_wait(rank: int, n: int) -> None:
    if rank == 0:
        dist.isend(torch.ones(1 << 20), 1)
        dist.recv(one(), 1, tag=1)
    else:
        dist.recv(torch.ones(1 << 20), 0)


def left_before_a_recv(rank: int, n: int) -> None:
    if rank:
        dist.send(one(), 0)


PROGRAMS = {name: (stuck.work, stuck.world_size, stuck.init) for name, stuck in STUCK.items()}
PROGRAMS |= {
    program.__name__: (program, 2, True)
    for program in (
        different_roots,
        cycle_of_a_send_and_a_collective,
        isend_without_wait,
        left_before_a_recv,
    )
}


def record(program: Program, world_size: int, init: bool) -> Stored:
    """Run a program that gets stuck, and return the arguments that the detector passed to `diagnose`."""
    found: list[Stored] = []

    def keep(states: Sequence[RankState], trace: Trace) -> Diagnosis:
        found.append(Stored(tuple(states), trace))
        return diagnose(states, trace)

    deadlock_watch.diagnose = keep  # type: ignore[attr-defined]
    try:
        run = launch(program, world_size, init=init, on_failure="return", timeout=20)
    finally:
        deadlock_watch.diagnose = diagnose  # type: ignore[attr-defined]
    assert isinstance(run.failure, Deadlock), run.failure
    return plain_world(found[-1])


FOLDERS = re.compile(r"""(?<![\w.:/])(?:file://)?/(?:[^/\s'"(),]+/)*(?=[^/\s])""")
"""The folders of an absolute path, at the start of a text or inside it."""


def plain_world(world: Stored) -> Stored:
    """Remove facts that depend on machine and time: folders in all texts, and the start of the clock."""
    facts = _without_folders(msgspec.to_builtins(_from_zero(world)))
    return msgspec.convert(facts, Stored)


def _without_folders(facts: object) -> object:
    if isinstance(facts, str):
        # If a path is the whole text, it may contain spaces.
        return Path(facts).name if facts.startswith("/") else FOLDERS.sub("", facts)
    if isinstance(facts, dict):
        return {name: _without_folders(fact) for name, fact in facts.items()}
    return list(map(_without_folders, facts)) if isinstance(facts, list | tuple) else facts


def _from_zero(world: Stored) -> Stored:
    began = min((event.start_ns for event in world.trace), default=0)

    def since(when: int | None) -> int | None:
        return None if when is None else when - began

    def from_zero(event: Event) -> Event:
        return replace(
            event,
            where=event.where and replace(event.where, source=""),
            start_ns=event.start_ns - began,
            wait_ns=since(event.wait_ns),
            end_ns=since(event.end_ns),
        )

    states = tuple(
        replace(
            state,
            blocked=state.blocked and from_zero(state.blocked),
            pending=tuple(map(from_zero, state.pending)),
        )
        for state in world.states
    )
    return Stored(states, replace(world.trace, events=tuple(map(from_zero, world.trace))))


def main(names: Sequence[str]) -> None:
    for name in names or sorted(path.stem for path in FOLDER.glob("*.json")):
        text = msgspec.json.encode(record(*PROGRAMS[name]))
        (FOLDER / f"{name}.json").write_bytes(text + b"\n")
        found = diagnose(stored(name).states, stored(name).trace)
        print(f"{name} ({found.kind}, ranks {found.guilty}): {found.summary} {found.advice}")


if __name__ == "__main__":
    main(sys.argv[1:])
