"""Records what was known of real stuck worlds at the moment of their diagnosis, a JSON file each.

`PYTHONPATH=. python -m tests.trace.deadlocks.record [NAME ...]` runs the programs and writes the files again.
`tests/trace/test_diagnosis.py` explains the stored worlds, in milliseconds, without a rank.
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

from helpers.ranks import watch
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
    """A stuck world: what was known of each rank, and all that they had recorded."""

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


OWN: dict[str, tuple[Program, int]] = {
    program.__name__: (program, 2)
    for program in (
        different_roots,
        cycle_of_a_send_and_a_collective,
        isend_without_wait,
        left_before_a_recv,
    )
}
FROM_STUCK = (
    "cycle_of_receives",
    "cycle_of_sends",
    "left_before_a_collective",
    "another_collective",
    "different_shapes",
    "tags",
    "two_groups_crosswise",
    "new_group_without_a_rank",
    "new_group_during_a_receive",
    "init_with_a_wrong_world_size",
    "skipped_backward",
    "lock_of_its_own",
    "key_of_a_peer_that_waits",
    "queue_of_the_peer",
    "ring_that_receives_from_the_wrong_side",
    "locks_taken_in_two_orders",
    "another_collective_after_one_of_a_subgroup",
    "call_too_many",
    "backward_that_communicates",
    "loss_without_parameters",
    "gather_to_oneself",
    "local_group_after_another",
    "groups_in_different_orders",
    "file_lock_around_a_barrier",
    "file_lock_of_its_own",
    "store_of_its_own",
    "number_of_another_rank",
    "group_too_many",
    "rpc_that_never_returns",
)


def record(program: Program, world_size: int, init: bool) -> Stored:
    """Run a program that gets stuck; keep what the watcher has handed to `diagnose`."""
    found: list[Stored] = []

    def keep(states: Sequence[RankState], trace: Trace) -> Diagnosis:
        found.append(Stored(tuple(states), trace))
        return diagnose(states, trace)

    watch.diagnose = keep  # type: ignore[attr-defined]
    try:
        run = launch(program, world_size, init=init, on_failure="return", timeout=20)
    finally:
        watch.diagnose = diagnose  # type: ignore[attr-defined]
    assert isinstance(run.failure, Deadlock), run.failure
    return plain_world(found[-1])


FOLDERS = re.compile(r"""(?<![\w.:/])(?:file://)?/(?:[^/\s'"(),]+/)*(?=[^/\s])""")
"""The folders of an absolute path, at the start of a text or within it."""


def plain_world(world: Stored) -> Stored:
    """Remove facts of one machine and one moment: folders from all texts, and the start of the clock."""
    facts = _without_folders(msgspec.to_builtins(_from_zero(world)))
    return msgspec.convert(facts, Stored)


def _without_folders(facts: object) -> object:
    if isinstance(facts, str):
        # A path that is the whole text may contain spaces.
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
    programs = {
        name: (s.work, s.world_size, s.init) for name, s in STUCK.items() if name in FROM_STUCK
    }
    programs |= {name: (program, size, True) for name, (program, size) in OWN.items()}
    for name in names or programs:
        text = msgspec.json.encode(record(*programs[name]))
        (FOLDER / f"{name}.json").write_bytes(text + b"\n")
        print(name, diagnose(stored(name).states, stored(name).trace).summary)


if __name__ == "__main__":
    main(sys.argv[1:])
