"""The first thing to look at when ranks did not find each other, or formed the wrong groups.

Looks of notebook 01's exercises, from what `start_groups` recorded: pure functions of case and run,
each "" where it has nothing to say.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import zip_longest

import torch

from helpers.exercises.model import Case
from helpers.exercises.start_groups import NO_GROUP, StillWaiting
from helpers.ranks.failures import RankFailed
from helpers.ranks.run import Run
from helpers.trace.events import Event, Trace

_ATTEMPT = re.compile(r"init as (?P<identity>rank .* of .*) by (?P<place>.*)")
"""How `start_groups.watch` calls the span of an init_process_group."""


@dataclass(frozen=True, slots=True)
class Attempt:
    """One call of init_process_group, as the rank of the launch that made it recorded it."""

    rank: int
    identity: str
    place: str

    @property
    def counted_from_one(self) -> bool:
        number, _, size = self.identity.removeprefix("rank ").partition(" of ")
        return number.isdigit() and size.isdigit() and int(number) >= int(size)


def attempts_of(trace: Trace, rank: int) -> list[Attempt]:
    """Give a rank's calls of init_process_group, in order."""
    found = (_ATTEMPT.fullmatch(event.call) for event in trace.spans if event.rank == rank)
    return [Attempt(rank, match["identity"], match["place"]) for match in found if match]


def look_at_start(case: Case, run: Run) -> str:
    """Look at worlds in which all ranks are one job."""
    return _look(case, run, [range(case.world_size)])


def look_at_env(case: Case, run: Run) -> str:
    """Look at what a function that knows only its environment returned."""
    first = look_at_start(case, run)
    if first or run.failure is not None:
        return first
    for rank, value in enumerate(run.values):
        returned = value.get("returned") if isinstance(value, dict) else None
        if returned is None:
            return f"Rank {rank} returns nothing: it must return its three numbers."
        if isinstance(returned, (tuple, list)) and any(isinstance(v, str) for v in returned):
            return "What stands in os.environ is text, even if it looks like a number: int(...)."
        if value.get("at") == "another port":
            return "The ranks met at a port of their own choice. Leave MASTER_PORT as it is."
    return "Return three numbers in this order: rank, world size, and LOCAL_RANK."


def look_at_jobs(case: Case, run: Run) -> str:
    """Look at worlds of several jobs: inputs[r] begins with the name of rank r's job."""
    names = sorted({str(given[0]) for given in case.inputs})
    jobs = [[r for r, given in enumerate(case.inputs) if given[0] == name] for name in names]
    return _look(case, run, jobs) or _look_at_port(run) or _look_at_store(run)


def look_at_files(case: Case, run: Run) -> str:
    """Look at jobs that share a folder one after the other."""
    first = look_at_start(case, run)
    if first or run.failure is not None:
        return first
    if any("file elsewhere" in str(value) for value in run.values):
        return "They met in a file that is not in the folder: other machines may not see it."
    if any("used file" in str(value) for value in run.values):
        return (
            "Both jobs met in one file. That went well only because the first one cleaned up: a "
            "job that is killed leaves its file, with addresses of processes that are gone."
        )
    return ""


def _look(case: Case, run: Run, jobs: Sequence[Sequence[int]]) -> str:
    attempts = {rank: attempts_of(run.trace, rank) for rank in range(case.world_size)}
    if not any(attempts.values()):
        return "" if _raised_itself(run) else "No rank calls dist.init_process_group."
    for job in jobs:
        silent = [rank for rank in job if not attempts[rank]]
        if silent and len(silent) < len(job) and not _raised_itself(run):
            return f"{_ranks(silent)} never called init_process_group: every rank must."
        for calls in zip_longest(*(attempts[rank] for rank in job)):
            if found := _compare([call for call in calls if call is not None]):
                return found
    if any(NO_GROUP in str(value) for value in run.values):
        return "The group was started and ended again: leave it open for whoever called you."
    return ""


def _raised_itself(run: Run) -> bool:
    """Tell whether a rank ended by an exception of its own, before it could come to its start."""
    return isinstance(run.failure, RankFailed) and run.failure.error.kind != StillWaiting.__name__


def _compare(calls: Sequence[Attempt]) -> str:
    """Compare the calls with which the ranks of one job try to meet."""
    for call in calls:
        if call.counted_from_one:
            return f"There is no {call.identity}: ranks are counted from 0."
        twins = [other.rank for other in calls if other.identity == call.identity]
        if len(twins) > 1:
            return (
                f"{_ranks(twins)} all start as {call.identity}: a rank is a process's number in "
                "the whole job (RANK), a local_rank its number on one machine (LOCAL_RANK)."
            )
    if len({call.place for call in calls}) > 1:
        places = ", ".join(f"rank {call.rank} at {call.place}" for call in calls)
        return f"Each waits at a place of its own ({places}): they must agree on one."
    if len({call.identity.rpartition(" of ")[2] for call in calls}) > 1:
        return "The ranks do not agree on the world size."
    return ""


def _look_at_port(run: Run) -> str:
    taken = isinstance(run.failure, RankFailed) and "EADDRINUSE" in run.failure.error.message
    if not taken:
        return ""
    return (
        "Two jobs on one machine want the same port. A port that is written down is free only "
        "until somebody else writes down the same: ask the system for a free one."
    )


def _look_at_store(run: Run) -> str:
    if run.failure is None and any("FileStore" in str(value) for value in run.values):
        return "They met in a file. Use it to tell the others the port, and meet by tcp:// there."
    return ""


def grid_groups(case: Case, rank: int) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Give the ranks of a rank's row and of its column; inputs[rank] is (rows, cols, x)."""
    rows, cols = case.inputs[rank][:2]
    row, column = divmod(rank, cols)
    grid = torch.arange(rows * cols).reshape(rows, cols)
    return tuple(grid[row].tolist()), tuple(grid[:, column].tolist())


def reduced_once_each(trace: Trace, case: Case) -> str:
    """Say which rank did not reduce once in its row's group and once in its column's.

    A group of one rank need not be reduced.
    """
    for rank in range(case.world_size):
        row, column = grid_groups(case, rank)
        wanted = sorted(group for group in (row, column) if len(group) > 1)
        used = sorted(event.group_ranks for event in _reductions(trace, rank))
        if [group for group in used if len(group) > 1] != wanted:
            listed = " and ".join(map(str, map(list, used))) or "no group"
            return (
                f"rank {rank} calls all_reduce in {listed}; wanted is once in its row "
                f"{list(row)} and once in its column {list(column)}."
            )
    return ""


def look_at_grid(case: Case, run: Run) -> str:
    """Name the slips that leave a typical trace or a typical sum."""
    error = run.failure.error if isinstance(run.failure, RankFailed) else None
    if error is not None and error.kind == "GroupsDiffer":
        return "Make all groups in a loop that is the same on every rank; keep those you are in."
    if run.failure is not None:
        return ""
    for rank, value in enumerate(run.values):
        if isinstance(value, (tuple, list)) and len(value) == 2:
            total = sum(given[2] for given in case.inputs)
            row, column = grid_groups(case, rank)
            if len(row) > 1 < len(column) and _same(value[1], total):
                return (
                    f"Rank {rank}: the second sum is over all ranks. all_reduce works in place, so "
                    "that the second one began with the sums of the first: give each its own clone."
                )
            if case.expected is not None and _swapped(value, case.expected[rank]):
                return f"Rank {rank}: the two sums are right, but in the other order."
    return ""


def _reductions(trace: Trace, rank: int) -> Iterator[Event]:
    return (event for event in trace.of(rank) if event.op == "all_reduce")


def _swapped(value: Sequence[object], wanted: Sequence[torch.Tensor]) -> bool:
    return _same(value[0], wanted[1]) and _same(value[1], wanted[0])


def _same(got: object, wanted: torch.Tensor) -> bool:
    return (
        isinstance(got, torch.Tensor) and got.shape == wanted.shape and bool((got == wanted).all())
    )


def _ranks(ranks: Sequence[int]) -> str:
    if len(ranks) == 1:
        return f"Rank {ranks[0]}"
    return f"Ranks {', '.join(map(str, ranks[:-1]))} and {ranks[-1]}"
