"""What 19.1, 19.3 and 19.4 say of a job that was killed and began again: what it found, where it went on."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from helpers.checks.author import *
from helpers.exercises.nb19_checkpoints.in_ranks.lives import Plan
from helpers.ranks.failures import RankFailed, is_consequence

NOTHING = (
    "`folder` was empty when the job began again: no checkpoint had been made. Save after each {every} "
    "steps, counted from the first step of the training, not of an epoch."
)
RENAME = (
    "A worker was killed while it saved, and no whole checkpoint was left under its name: write the new one "
    "under another name, then `os.replace` it over the old one, in one step."
)
LOOK = (
    "It began again at the very beginning, and has read no file, though a whole checkpoint was there: "
    "look for it before the loop, and in the folder that was given."
)
READ = (
    "It has read a checkpoint, and began at the start of an epoch all the same: keep the number of steps "
    "done in it."
)
TEXT = "Compare the numbers of steps as numbers: as texts, '5' comes after '10'."
AGAIN = "Save after each {every} steps, counted from the very first one, and go on with the next."
EARLIER = (
    "The losses of before the death are missing: keep the list in the checkpoint and go on with it."
)
HALF = (
    "A worker was killed while it wrote, and left half a file, which is loaded as if it were whole. Write "
    "under another name, `os.replace` it over the old one when it is whole, and load only what has the final "
    "name; if nothing has, begin at the first step."
)
UNSTOPPABLE = (
    "The check kills the job from another process, half-way through a write as well, to see what is left. "
    "Write checkpoints with `torch.save`, `open` or `os.write`, in the rank itself, and let a death happen."
)


IN_FOLDER = (
    "Only `folder` is seen by all machines, and is still there when the job is started again."
)


def evidence(got: Mapping[str, Any], plans: Sequence[Plan]) -> Finding | None:
    """Say so where a planned death did not take place, or a file was written out of the check's sight."""
    killed, changed, lives = got["killed"], got["changed"], got["lives"]
    for k, (ends, files, life) in enumerate(zip(killed, changed, lives, strict=True)):
        plan = plans[k] if k < len(plans) else None
        last = len(life["rows"]) - 1  # of this attempt's ranks
        if plan is not None:
            victim = plan.rank if "died" in life or plan.step < 0 else last
            not_so_far = k == len(killed) - 1 and plan.step < 0 and at_least(files) < plan.event
            if list(ends) != [victim] and not not_so_far:
                what = f"rank {victim} was to be killed in attempt {k + 1}, and was not"
                return Finding(what, UNSTOPPABLE)
        if files["closed"] > 2 * life["opened"]:  # `torch.save` makes it two closings for one
            what = (
                f"in attempt {k + 1} files were changed more often than the check could interrupt"
            )
            return Finding(what, UNSTOPPABLE)
        if k and life.get("first") and not life["found"]["files"]:
            return Finding("it went on from a checkpoint that is not in `folder`", IN_FOLDER)
        if unseen := set(files["names"]) - set(life["named"]):
            what = f"the file {min(unseen)!r} was changed in a way that the check cannot interrupt"
            return Finding(what, UNSTOPPABLE)
        if files["overflowed"]:
            return Finding(f"attempt {k + 1} did more to its files than can be followed")
    return None


def intruder(got: Mapping[str, Any], advice: str) -> Finding | None:
    """Say so where a rank that is not rank 0 changed a file, which ended the job."""
    if (rank := got["intruder"]) is None:
        return None
    return Finding(f"rank {rank} writes a file in `folder`, too: rank 0 alone saves", advice)


def at_least(files: Mapping[str, Any]) -> int:
    """Return how many events of an attempt's files the check must have seen, by what the kernel saw.

    A file is opened and then written: two events, of which `torch.save` makes the kernel see two closings.
    """
    seen: int = -(-files["closed"] // 2) + files["moved"] + files["deleted"]
    return seen


def newest_as_text(life: Mapping[str, Any], every: int, newest: int) -> int:
    """Give the steps of what is newest by its name as text; -1 where there are not several."""
    made = range(every, newest + 1, every)
    return max(made, key=str, default=-1) if len(life["found"]["whole"]) > 1 else -1


def at_the_wrong_time(before: Mapping[str, Any], every: int) -> Finding | None:
    """Say so where an attempt was killed in a save that was not due."""
    done = before["died"][0] if "died" in before else 0
    return Finding(f"it saves after {done} steps", AGAIN) if done % every else None


def was_made(newest: int, before: Mapping[str, Any]) -> str:
    """Say what an attempt could resume from; newest: the steps of the newest whole checkpoint."""
    if not newest:
        return "no checkpoint had been made before"
    # after a death in a save it is known that there was one before; else only that there should be one
    said = "the newest whole checkpoint was made" if "died" in before else "a checkpoint was due"
    return f"{said} after {newest} steps"


def why_from_zero(before: Mapping[str, Any], life: Mapping[str, Any]) -> str:
    """Say why an attempt of a job began at step 0, by what it found in the folder and whether it read it."""
    found, gone = life["found"], set(before["found"]["whole"]) - set(life["found"]["whole"])
    if "died" in before and (gone or not found["whole"]):
        return RENAME
    if not found["files"]:
        return NOTHING
    return READ if life.get("read") else LOOK


def half_loaded(case: Case, run: Run) -> bool:
    """Tell a run that fails at loading after a death in a save."""
    lives = lives_of(run)
    return len(lives) > 1 and "died" in lives[-2] and is_at_load(run)


def lives_of(run: Run) -> Sequence[Mapping[str, Any]]:
    """Give what the attempts of a job have left, also where the last of them failed."""
    told = next((value for value in run.values if isinstance(value, dict)), {})
    lives = told.get("lives", [])
    return list(lives)


def is_at_load(run: Run) -> bool:
    """Tell whether a rank failed in a line of the answer that loads."""
    error = run.failure.error if isinstance(run.failure, RankFailed) else None
    return error is None or any(re.search(r"load\(", at.source) for at in error.frames[-1:])


def left_alone(case: Case, run: Run) -> bool:
    """Tell whether all that is known is that a peer had gone: one rank was done, others were not."""
    failure = run.failure
    return isinstance(failure, RankFailed) and is_consequence(failure.error)


LEFT_ALONE = Failed(
    ".",
    "One rank waited in a collective for a rank that had already returned: every rank must make the same "
    "calls, as often as the others.",
    when=left_alone,
)
