"""Explain a hang from dumps by reading and merging them, and finding the first matching cause."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from math import prod
from pathlib import Path

from helpers.dumps.causes import (
    find_gloo_messages,
    find_lonely_message,
    find_missing_call,
    find_passed_message,
    find_silent_rank,
    find_unequal_exchange,
    find_unfinished_call,
    name_some,
)
from helpers.dumps.files import Folder, read_folder
from helpers.dumps.merge import Merged, merge_dumps
from helpers.ranks.failures import Deadlock
from helpers.trace.causes_collectives import find_group_order, find_skipped_backward
from helpers.trace.causes_different_calls import describe_different_calls
from helpers.trace.causes_messages import find_cycle, find_tag_mismatch, find_wrong_peer
from helpers.trace.causes_missing_calls import find_unmatched_call
from helpers.trace.events import CallWait, Diagnosis, OtherWait, Wait
from helpers.trace.mismatch import Difference, at, first_difference
from helpers.trace.waits import StuckWorld, stuck_world
from helpers.views.plain import for_log, one_line, plural

NOTHING, UNREADABLE, HANG = 0, 1, 2
"""Exit codes of `course explain`."""
_MAX_LISTED = 16


@dataclass(frozen=True)
class Explanation:
    """The explanation of a job's hang from its dumps. diagnosis: None if nothing is suspicious."""

    merged: Merged
    diagnosis: Diagnosis | None
    problems: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def exit_code(self) -> int:
        if not self.merged.dumps or (self.problems and self.diagnosis is None):
            return UNREADABLE
        return HANG if self.diagnosis else NOTHING

    @property
    def headline(self) -> str:
        dumps = self.merged.dumps
        backends = sorted({name for dump in dumps.values() for name in dump.backends if name})
        about = f" ({', '.join(backends)})" if backends else ""
        world = self.merged.trace.world_size
        return f"{plural(len(dumps), 'dump')} of {plural(world, 'rank')}{about}"

    @property
    def verdict(self) -> str:
        """The explanation without a list of files and notes."""
        if self.diagnosis is not None:
            return str(Deadlock(self.diagnosis))
        if not self.merged.dumps:
            if self.problems:
                return "No dump could be read."
            if self.merged.stacks:
                return (
                    f"There are stacks of {plural(len(self.merged.stacks), 'rank')}, but no dump."
                )
            return "The folder has no dump: a file whose name contains the rank's number, such as dump_0."
        return "Nothing is suspicious: each call has finished, and the calls of all ranks match."

    @property
    def text(self) -> str:
        lines = [self.headline, "", self.verdict]
        lines += ["", *(f"Note: {note}." for note in self.notes)] if self.notes else []
        lines += (
            ["", *(f"Not read: {one_line(line, 300)}." for line in self.problems)]
            if self.problems
            else []
        )
        return for_log("\n".join(lines))


def explain_folder(folder: Path) -> Explanation:
    """Read a folder's dumps and stacks, and explain them."""
    return explain(read_folder(folder))


def explain(folder: Folder) -> Explanation:
    """Explain the hang shown by the files of a folder."""
    merged = merge_dumps(folder.dumps, folder.stacks)
    notes = (*folder.notes, *_find_notes(merged))
    return Explanation(merged, _diagnose(merged), tuple(folder.problems), notes)


def _diagnose(merged: Merged) -> Diagnosis | None:
    if not merged.dumps:
        return None
    world = StuckWorld(merged.states, merged.trace, tuple(_find_waits(merged)))
    diagnosis = next(_causes(merged, world), None)
    return diagnosis and replace(diagnosis, waits=_listed_waits(diagnosis))


def _causes(merged: Merged, world: StuckWorld) -> Iterator[Diagnosis]:
    """Yield the matching causes, best evidence first."""
    present = [cause for cause in (find(world) for find in _FOUND_IN_TRACE) if cause is not None]
    difference = first_difference(merged.trace)
    if difference is not None:
        difference = _name_dtype(difference)
        missing = find_silent_rank(merged, world) or find_missing_call(merged, world)
        now = next(iter(present), missing) if difference.finished else None
        yield describe_different_calls(difference, world, now)
    for find in (find_unequal_exchange, find_silent_rank, find_passed_message):
        if (cause := find(merged, world)) is not None:
            yield cause
    yield from present
    for find in (find_missing_call, find_lonely_message):
        if (cause := find(merged, world)) is not None:
            yield cause
    if (cause := find_unmatched_call(world)) is not None:
        yield cause
    for find in (find_unfinished_call, find_gloo_messages):
        if (cause := find(merged, world)) is not None:
            yield cause


def _name_dtype(difference: Difference) -> Difference:
    """Turn a difference in bytes into a difference in dtypes if the numbers of elements are equal."""
    one, other = difference.call, difference.other_call
    counts = [sum(map(prod, call.shapes)) for call in (one, other)]
    if difference.problem == "shape" and one.dtype != other.dtype and counts[0] == counts[1]:
        return replace(difference, problem="dtype")
    return difference


_FOUND_IN_TRACE: tuple[Callable[[StuckWorld], Diagnosis | None], ...] = (
    find_group_order,
    find_skipped_backward,
    find_tag_mismatch,
    find_wrong_peer,
    find_cycle,
)


def _find_waits(merged: Merged) -> Iterator[Wait]:
    """Yield each rank's wait. Without a stack, a dump does not show the position of a rank outside calls."""
    awaited = _awaited_ranks(merged)
    for state in merged.states:
        if (event := state.blocked) is not None:
            peers = () if event.peer is None else (event.peer,)
            yield CallWait(state.rank, event, awaited.get((event.rank, event.seq), peers))
        elif state.rank in merged.stacks:
            yield stuck_world((state,), merged.trace).waits[0]
        elif state.rank not in merged.dumps:
            yield OtherWait(state.rank, "has no dump")
        else:
            last = merged.last_calls.get(state.rank)
            about = f"; its last call was {last.call}{at(last)}" if last else ""
            yield OtherWait(state.rank, f"is in no unfinished call{about}")


def _awaited_ranks(merged: Merged) -> dict[tuple[int, int], tuple[int, ...]]:
    """Return, for each unfinished call, the ranks that have not made the same collective."""
    awaited = {}
    for collective in merged.trace.collectives():
        missing: dict[str, tuple[int, ...]] = {}
        for call in collective.calls:
            if call.finished:
                continue
            if call.op not in missing:
                arrived = {other.rank for other in collective.calls if other.op == call.op}
                missing[call.op] = tuple(r for r in collective.group_ranks if r not in arrived)
            awaited[call.rank, call.seq] = missing[call.op]
    return awaited


def _listed_waits(diagnosis: Diagnosis) -> tuple[Wait, ...]:
    """Return the waits to list: all of them or, in a large world, those of guilty ranks and some others."""
    if len(diagnosis.waits) <= _MAX_LISTED:
        return diagnosis.waits
    guilty_ranks = set(diagnosis.guilty)
    guilty = [wait for wait in diagnosis.waits if wait.rank in guilty_ranks][: _MAX_LISTED // 2]
    others = [wait for wait in diagnosis.waits if wait.rank not in guilty_ranks]
    listed = guilty + others[: _MAX_LISTED - len(guilty)]
    listed = [replace(wait, waits_for=wait.waits_for[:_MAX_LISTED]) for wait in listed]
    return tuple(sorted(listed, key=lambda wait: wait.rank))


def _find_notes(merged: Merged) -> Iterator[str]:
    """Yield notes on the limits of the explanation."""
    dumps, all_ranks = merged.dumps.values(), tuple(merged.trace.ranks)
    if silent := merged.silent_ranks:
        yield f"there is no dump of {name_some(silent)}"
    if any("gloo" in dump.backends for dump in dumps):
        yield "gloo records no sends and receives, so only stacks can show them"
        if any(not call.finished and call.group_ranks != all_ranks for call in merged.trace):
            yield "gloo does not record a group's members: they are taken to be the ranks that used it"
    if len({dump.version for dump in dumps}) > 1:
        versions = ", ".join(sorted({one_line(dump.version, 20) or "none" for dump in dumps}))
        yield f"the dumps have different versions of the format ({versions})"
    if cut := [dump.rank for dump in dumps if dump.is_cut]:
        yield f"the oldest calls of {name_some(cut)} were overwritten (TORCH_FR_BUFFER_SIZE)"
    if any(dump.is_active_only for dump in dumps):
        yield "some dumps contain unfinished calls only, so a rank without a call may have finished it"
    if dumps and not any(dump.has_stacks for dump in dumps):
        yield "the dumps have no stacks, so calls have no lines (JSON never has them, pickles do)"
    if unknown := sorted({one_line(name) for dump in dumps for name in dump.unknown}):
        yield f"these operations are not compared: {', '.join(unknown[:8])}"
