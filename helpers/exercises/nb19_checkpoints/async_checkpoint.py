"""19.3 async_save: write while training continues (15 min, ●●●○○, further)

- A rank might be killed while it is writing. Which checkpoint must still be complete, and how do you find it?
  And which group may each of the two threads use?
- Use a separate folder for each checkpoint, named after the number of steps done. A folder with a `.metadata`
  file is complete, so first load the newest of these folders. Keep the future of each save, and wait for its
  `result()` before starting the next save.
- whole = [p for p in Path(folder).iterdir() if (p / ".metadata").exists()]; newest = max(whole, key=lambda
  p: int(p.name)); dcp.load(state, checkpoint_id=newest). In the loop, every `every` steps: if earlier:
  earlier.result(); earlier = dcp.async_save(state, checkpoint_id=f"{folder}/{n + 1}", process_group=group).
  After the loop: earlier.result().
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import torch

from helpers.checks.author import *
from helpers.exercises.nb19_checkpoints.in_ranks.while_training import run_training, train_one_step
from helpers.exercises.nb19_checkpoints.shared import find_missing_kill, observe
from helpers.exercises.shared.in_ranks.attempts import Plan

OBSERVATIONS = {
    "main thread": "the main thread writes the checkpoint, so training is blocked",
    "waits": "after starting a save, the main thread waits for it before the next step",
    "group": "the writing thread doesn't communicate on `group`",
    "two": "a save begins while the previous one is still being written",
    "at the end": "your function returns while a checkpoint is still being written",
}
"""Descriptions of the check's observations while writing a checkpoint. The first that applies is shown."""
KILL_KINDS = (
    "no death",
    "first save",
    "any rank",
    "older removed",
    "names as texts",
    "two deaths",
    "second fails",
    "last fails",
)


def case(draw: Draw) -> Case:
    n, plan = draw.ranks, draw.of(*KILL_KINDS)
    # at 5 and 10, or 6, 12 and 18, sorting names as text gives a different newest one
    every = {"older removed": 2, "names as texts": draw.of(5, 6)}.get(plan) or draw.of(2, 3, 5)
    count = 5
    steps = count * every
    save = {"first save": 1, "older removed": 3, "names as texts": 4}.get(plan) or draw.of(2, 3)
    weight = draw.tensor((draw.of(n, 2 * n + 1, 3 * n), 2), torch.float32, 1.0)
    rank = draw.rank()
    plans: list[Plan] = []
    if plan == "any rank" and rank:
        # this rank writes one file; rank 0 also writes the metadata
        plans = [Plan(event=draw.of(1, 2, 3), rank=rank, save=save)]
    elif plan not in {"no death", "second fails", "last fails"}:
        plans = [Plan(event=draw.of(1, 2, 4, 6, 7, 8), save=save)]
    if plan == "two deaths":
        plans.append(Plan(event=draw.of(1, 4, 7), save=1))
    fails = {"second fails": [2, rank], "last fails": [count, rank]}.get(plan, [0, 0])
    shares = [weight.chunk(n)[r] if r < len(weight.chunk(n)) else weight[:0] for r in range(n)]

    def expected_share(k: int, r: int, numbers: Sequence[float]) -> torch.Tensor:
        share = shares[r].clone()
        for step in range(k):
            train_one_step(share, step, numbers[step] if step < len(numbers) else 0.0)
        return share

    def problem(got: dict[str, Any], r: int) -> Finding | None:
        did = got["steps"]
        if not did:
            return Finding("train_step is never called")
        if found := find_missing_kill(got, plans):
            return found
        attempts = got["attempts"]
        for kill, before, following in zip(plans, attempts, attempts[1:], strict=False):
            if found := judge_kill(kill, before) or judge_start(before, following):
                return found
        first = did[0]
        if fails[0]:
            if got["raised"]:
                return None
            what = (
                f"save {fails[0]} could not be written (no space left), but your function "
                "returned without an error"
            )
            seen = "at the end" if "at the end" in got["noted"] else "an error is lost"
            return Finding(what, seen=(seen,))
        if did != list(range(first, steps)):
            what = f"it trains steps {did} instead of all steps from {first} to {steps - 1}"
            return Finding(what, seen=("steps out of order",))
        for name, what in OBSERVATIONS.items():
            if name in got["noted"]:
                return Finding(what, seen=(name,))
        if not same(expected_share(first, r, got["numbers"]), got["began with"], 0):
            return judge_first_weights(got, first, r)
        wanted = (steps - first) // every
        if got["writes"] != wanted:
            saves = plural(got["writes"], "time")
            what = f"from step {first} on, it saves {saves} instead of {wanted}"
            return Finding(what, seen=("saves too often or too rarely",))
        return None

    def judge_kill(kill: Plan, before: Mapping[str, Any]) -> Finding | None:
        """Return the problem with the number of steps after which a killed save began."""
        done, due = before["died"][0], before.get("first", 0) + kill.save * every
        if done >= due:
            return None
        what = f"save {kill.save} begins within the first {done} steps, but is due after {due}"
        return Finding(what, seen=("saves too often or too rarely",))

    def judge_start(before: Mapping[str, Any], following: Mapping[str, Any]) -> Finding | None:
        """Return the problem with the step at which an attempt resumed after `before`."""
        if "first" not in following:
            return None
        # the killed save may already have been complete
        first, newest = following["first"], before["died"][0] - every
        if first in (newest, newest + every):
            return None
        whole = following["found"]["whole"]
        made = (newest - before["first"]) // every
        more = len(whole) + (plan == "older removed") - len(before["found"]["whole"]) - made
        if more > 0:
            was = f"the newest complete checkpoint was made after {newest + every} steps"
        elif more < 0:  # unknown other checkpoints were removed
            was = (
                f"the newest complete checkpoint was made after {newest} or {newest + every} steps"
            )
        elif newest:
            was = f"the newest complete checkpoint was made after {newest} steps"
        else:
            was = "no checkpoint was complete"
        # the checkpoint was removed or overwritten, so none is complete, or not the one found by this attempt
        lost = not whole or (not made and before["found"]["whole"][-1] not in whole)
        texts = list(range(every, newest + 1, every))[-len(whole) :]
        seen: tuple[str, ...] = ()
        if newest and lost:
            seen = ("newest checkpoint gone",)
        elif not first:
            seen = ("number not restored" if following.get("read") else "nothing read",)
        elif len(texts) > 1 and first == texts[-2]:
            seen = ("newest by time",)
            seen = ("newest as text", *seen) if first == max(texts, key=str) else seen
        elif first == max(texts, key=str, default=0):
            seen = ("newest as text",)
        elif first + 1 in (newest, newest + every):
            seen = ("one step early",)
        elif first - 1 in (newest, newest + every):
            seen = ("one step late",)
        elif first == every * len(whole):
            seen = ("checkpoints counted",)
        return Finding(f"it resumes at step {first}, but {was}", seen=seen)

    def judge_first_weights(got: Mapping[str, Any], first: int, r: int) -> Finding:
        have, numbers = got["began with"], got["numbers"]
        what = f"it resumes at step {first}, but not with the weights after {first} steps"
        if same(expected_share(0, r, numbers), have, 0):
            return Finding(what, seen=("weights not loaded",))
        copied = ("state changed while written",) if "own thread" in got["noted"] else ()
        for k in range(steps + 1):
            if len(have) and same(expected_share(k, r, numbers), have, 0):
                what = f"it resumes at step {first}, but with the weights after {plural(k, 'step')}"
                return Finding(what, seen=copied if k > first else ())
        return Finding(
            f"{what}: {difference(expected_share(first, r, numbers), have, 0)}", seen=copied
        )

    said = [f"rank {one.rank} killed at event {one.event} of save {one.save}" for one in plans]
    said += [f"save {fails[0]} fails on rank {rank}"] if fails[0] else []
    return Case(
        f"a weight of shape {tuple(weight.shape)}, {steps} steps, a checkpoint every {every}, "
        + (", then ".join(said) or "not killed"),
        [([n] * (len(plans) + 1), plans, weight, steps, every, fails, plan == "older removed")] * n,
        right=problem,
        like={},
        facts={"every": every},
        seconds=20.0,
        shown=f"steps = {steps}, every = {every}",
    )


def observe_failure(case: Case, run: Run) -> Iterator[str]:
    """Yield the observations in a failed run.

    If a checkpoint is not whole, `dcp.load` does not find its `.metadata`.
    """
    for name in observe(case, run):
        if name != "half a file loaded" or ".metadata" in str(run.failure):
            yield name


EXERCISE = Exercise(
    case,
    kind=Kind.SCRIPT,
    driver=run_training,
    reported=("raised", "steps", "writes", "noted"),
    sizes=(1, 2, 3),
    count=8,
    observe=observe_failure,
)
