"""Describe the steps at which killed jobs resumed, and the checkpoints found, for 19.1, 19.3 and 19.4."""

from __future__ import annotations

import re
from collections.abc import Container, Iterator, Mapping, Sequence
from typing import Any

from helpers.checks.author import *
from helpers.exercises.shared.in_ranks.attempts import Plan
from helpers.ranks.failures import RankDied, RankFailed

NOT_KILLED_SEEN = ("the check cannot kill it",)


def find_missing_kill(got: Mapping[str, Any], plans: Sequence[Plan]) -> Finding | None:
    """Return a finding if a planned kill did not take place, or if the check could not see a write."""
    killed, changed, attempts = got["killed"], got["changed"], got["attempts"]
    for k, (ends, files, one) in enumerate(zip(killed, changed, attempts, strict=True)):
        plan = plans[k] if k < len(plans) else None
        last = len(one["rows"]) - 1  # the last rank of this attempt
        if plan is not None:
            victim = plan.rank if "died" in one or plan.step < 0 else last
            not_so_far = (
                k == len(killed) - 1 and plan.step < 0 and count_known_events(files) < plan.event
            )
            if list(ends) != [victim] and not not_so_far:
                what = f"rank {victim} should have been killed in attempt {k + 1}, but was not"
                return Finding(what, seen=NOT_KILLED_SEEN)
        # the kernel sees two closings of each file by `torch.save`
        if files["closed"] > 2 * one["opened"]:
            what = (
                f"in attempt {k + 1}, files were changed more often than the check could interrupt"
            )
            return Finding(what, seen=NOT_KILLED_SEEN)
        if k and one.get("first") and not one["found"]["files"]:
            what = "it resumed from a checkpoint outside of `folder`"
            return Finding(what, seen=("resumed from outside of folder",))
        if unseen := set(files["names"]) - set(one["named"]):
            what = f"the file {min(unseen)!r} was changed in a way that the check cannot interrupt"
            return Finding(what, seen=NOT_KILLED_SEEN)
        if files["overflowed"]:
            return Finding(f"attempt {k + 1} changed its files too often for the check to follow")
    return None


def find_intruder(got: Mapping[str, Any]) -> Finding | None:
    """Return a finding if a rank other than 0 changed a file, because this ended the job."""
    if (rank := got["intruder"]) is None:
        return None
    what = f"rank {rank} writes a file, but only rank 0 should save"
    return Finding(what, seen=("a rank other than 0 writes",))


def count_known_events(files: Mapping[str, Any]) -> int:
    """Return the number of file events that the check must have seen in an attempt, as the kernel counts.

    Opening a file and writing it are two events. For `torch.save`, the kernel sees a file closed twice.
    """
    seen: int = -(-files["closed"] // 2) + files["moved"] + files["deleted"]
    return seen


def judge_resume_step(
    what: str,
    previous: Mapping[str, Any],
    current: Mapping[str, Any],
    newest: Sequence[int],
    every: int,
    first: int,
) -> Finding | None:
    """Return a finding if no whole checkpoint explains the step at which an attempt resumed.

    current: the attempt. previous: the previous attempt. newest: possible numbers of steps of the newest
    whole checkpoint. first: the step at which the attempt resumed.
    """
    done = previous["died"][0] if "died" in previous else 0
    if done % every:
        return Finding(f"it saves after {plural(done, 'step')}", seen=("a save that was not due",))
    if first in newest:
        return None
    made = newest[0]
    # after a kill in a save, an earlier checkpoint certainly exists; otherwise one should exist
    due = (
        "the newest complete checkpoint was made" if "died" in previous else "a checkpoint was due"
    )
    was = f"{due} after {plural(made, 'step')}" if made else "no checkpoint had been made yet"
    found, gone = current["found"], set(previous["found"]["whole"]) - set(current["found"]["whole"])
    texts = max(range(every, made + 1, every), key=str, default=-1)
    if first:
        seen = "newest as text" if len(found["whole"]) > 1 and first == texts else "wrong step"
    elif "died" in previous and (gone or not found["whole"]):
        seen = "no whole checkpoint left"
    elif not found["files"]:
        seen = "no checkpoint made"
    else:
        seen = "number of steps not restored" if current.get("read") else "checkpoint not read"
    return Finding(f"{what}; {was}", seen=(seen,))


def judge_loss_count(
    losses: Any, expected: int, starts: Container[int], subject: str
) -> Finding | None:
    """Return a finding if there is not one loss for each step. starts: the steps at which attempts began."""
    if losses is None:
        return Finding(f"{subject} returns nothing", "Return the list of losses.")
    have = len(losses) if isinstance(losses, (list, tuple)) else 0
    if have == expected:
        return None
    seen = ("earlier losses missing",) if have < expected and expected - have in starts else ()
    return Finding(
        f"{subject} returns {have} losses instead of one for each of {expected} steps", seen=seen
    )


def observe(case: Case, run: Run) -> Iterator[str]:
    """Yield the observations in a run that failed after being killed in a save."""
    attempts, failure = attempts_of(run), run.failure
    error = failure.error if isinstance(failure, RankFailed) else None
    if error and error.kind == "OSError" and "cross-device" in error.message:
        yield "file moved from another disk"
    # if a rank's process died, its error names no line
    at_load = isinstance(failure, RankDied) or (
        error is not None and any(re.search(r"load\(", at.source) for at in error.frames[-1:])
    )
    if len(attempts) > 1 and "died" in attempts[-2] and at_load:
        first_save = attempts[-2]["died"][0] <= case.facts["every"]
        if not first_save and not attempts[-1]["found"]["whole"]:
            yield "newest checkpoint gone"
        yield "half a file loaded"


def attempts_of(run: Run) -> Sequence[Mapping[str, Any]]:
    """Return the known facts about a job's attempts, even if the last attempt failed."""
    told = next((value for value in run.values if isinstance(value, dict)), {})
    attempts = told.get("attempts", [])
    return list(attempts)
