"""Explain a hang from dumps: read them, merge them, and find the first cause that fits."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from helpers.dumps.causes import (
    find_gloo_messages,
    find_lonely_message,
    find_missing_call,
    find_silent_rank,
    find_unequal_exchange,
    find_unfinished_call,
)
from helpers.dumps.files import Folder, read_folder
from helpers.dumps.merge import Merged, merge_dumps
from helpers.ranks.failures import Deadlock
from helpers.trace.causes_collectives import find_group_order, find_skipped_backward
from helpers.trace.causes_messages import find_cycle, find_tag_mismatch, find_wrong_peer
from helpers.trace.causes_missing_calls import find_unmatched_call
from helpers.trace.different_calls import describe_different_calls
from helpers.trace.events import Diagnosis, OtherWait, Wait
from helpers.trace.mismatch import first_difference
from helpers.trace.waits import StuckWorld, stuck_world
from helpers.trace.wording import name_ranks
from helpers.views.plain import for_log, one_line, plural

NOTHING, UNREADABLE, HANG = 0, 1, 2
"""Exit codes of `course explain`."""
_MAX_LISTED = 16


@dataclass(frozen=True)
class Explanation:
    """Why a job hangs, by its dumps. diagnosis: None if nothing is suspicious."""

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
            return "No dump could be read."
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
    """Explain what the files of a folder show."""
    merged = merge_dumps(folder.dumps, folder.stacks)
    notes = (*folder.notes, *_find_notes(merged))
    return Explanation(merged, _diagnose(merged), tuple(folder.problems), notes)


def _diagnose(merged: Merged) -> Diagnosis | None:
    if not merged.dumps:
        return None
    world = stuck_world(merged.states, merged.trace)
    world = StuckWorld(world.states, world.trace, tuple(_clear_waits(world.waits, merged)))
    diagnosis = next(_causes(merged, world), None)
    return diagnosis and replace(diagnosis, waits=_listed_waits(diagnosis))


def _causes(merged: Merged, world: StuckWorld) -> Iterator[Diagnosis]:
    """Yield the causes that fit, the one with the best evidence first."""
    present = [cause for cause in (find(world) for find in _FOUND_IN_TRACE) if cause is not None]
    difference = first_difference(merged.trace)
    if difference is not None:
        missing = find_silent_rank(merged, world) or find_missing_call(merged, world)
        now = next(iter(present), missing) if difference.finished else None
        yield describe_different_calls(difference, world, now)
    for find in (find_unequal_exchange, find_silent_rank):
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


_FOUND_IN_TRACE: tuple[Callable[[StuckWorld], Diagnosis | None], ...] = (
    find_group_order,
    find_skipped_backward,
    find_tag_mismatch,
    find_wrong_peer,
    find_cycle,
)


def _clear_waits(waits: tuple[Wait, ...], merged: Merged) -> Iterator[Wait]:
    """Describe ranks in no recorded call: without a stack, a dump does not show where they are."""
    for wait in waits:
        if isinstance(wait, OtherWait) and wait.rank not in merged.stacks:
            if wait.rank in merged.silent_ranks:
                yield OtherWait(wait.rank, "has no dump")
                continue
            calls = merged.trace.of(wait.rank)
            last = f"; its last one was {calls[-1].call}" if calls else ""
            place = f" ({calls[-1].where})" if calls and calls[-1].where else ""
            yield OtherWait(wait.rank, f"is in no unfinished call{last}{place}")
        else:
            yield wait


def _listed_waits(diagnosis: Diagnosis) -> tuple[Wait, ...]:
    """Return the waits to list: all, or those of guilty ranks and some others in a large world."""
    if len(diagnosis.waits) <= _MAX_LISTED:
        return diagnosis.waits
    guilty = [wait for wait in diagnosis.waits if wait.rank in diagnosis.guilty][: _MAX_LISTED // 2]
    others = [wait for wait in diagnosis.waits if wait.rank not in diagnosis.guilty]
    listed = guilty + others[: _MAX_LISTED - len(guilty)]
    return tuple(sorted(listed, key=lambda wait: wait.rank))


def _find_notes(merged: Merged) -> Iterator[str]:
    """Yield what limits the explanation."""
    dumps = merged.dumps.values()
    if silent := merged.silent_ranks:
        yield f"there is no dump of {name_ranks(silent[:_MAX_LISTED])}"
    if any("gloo" in dump.backends for dump in dumps):
        yield (
            "gloo records neither sends and receives nor the members of groups, so a group other than "
            "the default one is taken to consist of the ranks that used it"
        )
    if len({dump.version for dump in dumps}) > 1:
        versions = ", ".join(sorted({one_line(dump.version, 20) or "none" for dump in dumps}))
        yield f"the dumps have different versions of the format ({versions})"
    if cut := [dump.rank for dump in dumps if dump.is_cut]:
        yield f"the oldest calls of {name_ranks(cut[:_MAX_LISTED])} were overwritten (TORCH_FR_BUFFER_SIZE)"
    if dumps and not any(dump.has_stacks for dump in dumps):
        yield "the dumps have no stacks, so calls have no lines (JSON never has them, pickles do)"
    if unknown := sorted({one_line(name) for dump in dumps for name in dump.unknown}):
        yield f"these operations are not compared: {', '.join(unknown[:8])}"
