"""19.3 Write while training continues (15 min, ●●●○○, further)

- A rank may be killed while it writes. Which checkpoint must still be whole then, and how do you find it?
  And which group may each of the two threads use?
- Each checkpoint gets a folder of its own, named by the steps done. A folder that has a `.metadata` is
  whole: load the newest of those first. Keep the future of a save, and ask for its `result()` before the
  next one.
- whole = [p for p in Path(folder).iterdir() if (p / ".metadata").exists()]; newest = max(whole, key=lambda
  p: int(p.name)); dcp.load(state, checkpoint_id=newest). In the loop, every `every` steps: if earlier:
  earlier.result(); earlier = dcp.async_save(state, checkpoint_id=f"{folder}/{n + 1}", process_group=group).
  After the loop: earlier.result().
"""

from collections.abc import Mapping, Sequence
from typing import Any

import torch

from helpers.checks.author import *
from helpers.exercises.nb19_checkpoints.in_ranks.while_training import (
    Saving,
    learn,
    plans_of,
    train_and_save,
)
from helpers.exercises.nb19_checkpoints.shared import LEFT_ALONE, evidence, half_loaded, lives_of

ADVICE = {
    "main thread": (
        "the main thread itself writes the checkpoint, so the training stands still",
        "`dcp.save` returns when all is written; `dcp.async_save` copies, returns, and a thread writes.",
    ),
    "waits": (
        "after a save has begun, the main thread waits for it, before the next step",
        "Keep the future that `async_save` returns, and ask for its `result()` when the next save is due.",
    ),
    "group": (
        "the thread that writes does not talk on `group`",
        "Training and checkpoint would talk on one group from two threads, and their calls could meet in "
        "another order on each rank: give `async_save` `process_group=group`.",
    ),
    "two": (
        "a save begins while the one before is still being written",
        "Ask for the earlier future's `result()` first: two at a time talk on one group, hold two copies, "
        "and an error in the earlier one is never seen.",
    ),
    "at the end": (
        "your function returns while a checkpoint is still being written",
        "The process may end now, and the write with it: wait for the last future, too.",
    ),
}
LOOK = (
    "A whole checkpoint existed, and nothing was read: find the newest one in `folder`, and load it, "
    "before the first step."
)
NUMBER = "A checkpoint was read, but training does not continue at its number of steps."
TEXT = "Compare the numbers of steps as numbers: as strings, '5' comes after '10'."
COUNT = (
    "This is `every` times the number of checkpoints that exist. Older ones may have been removed."
)
TIMES = "Compare the numbers of steps, not file times: a folder that was copied has the times of the copying."
GONE = (
    "The newest whole checkpoint is no longer there, although no newer one is whole: give each checkpoint a "
    "folder of its own, and remove an older one only when a newer one is whole."
)
IN_PLACE = (
    "These are the weights with which every job starts. `dcp.load` fills the tensors of the dict that it "
    "is given: pass it `state`."
)
NO_COPY = (
    "`state` was written while the training went on changing it. `dcp.async_save` makes a copy before it "
    "returns; `dcp.save` in a thread of your own makes none."
)
LOST = (
    "A future keeps the error of its save until `result()` is asked for, which raises it; `done()` and "
    "`wait` do not."
)
UNFINISHED = (
    "A rank was killed while it wrote. What it left has no `.metadata`, but was loaded as if it were "
    "whole: ignore a folder without a `.metadata`."
)
PLANS = (
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
    n, plan = draw.ranks, draw.of(*PLANS)
    # at 5 and 10, or 6, 12 and 18, the newest by name as text is another one
    every = {"older removed": 2, "names as texts": draw.of(5, 6)}.get(plan) or draw.of(2, 3, 5)
    count = 5
    steps = count * every
    save = {"first save": 1, "older removed": 3, "names as texts": 4}.get(plan) or draw.of(2, 3)
    weight = draw.tensor((draw.of(n, 2 * n + 1, 3 * n), 2), torch.float32, 1.0)
    rank = draw.rank()
    deaths: list[list[int]] = []
    if plan == "any rank" and rank:
        deaths = [
            [rank, draw.of(1, 2, 3), save]
        ]  # it writes one file; rank 0 one more, the metadata
    elif plan not in {"no death", "second fails", "last fails"}:
        deaths = [[0, draw.of(1, 2, 4, 6, 7, 8), save]]
    if plan == "two deaths":
        deaths.append([0, draw.of(1, 4, 7), 1])
    fails = {"second fails": [2, rank], "last fails": [count, rank]}.get(plan, [0, 0])
    shares = [weight.chunk(n)[r] if r < len(weight.chunk(n)) else weight[:0] for r in range(n)]

    def after(k: int, r: int, numbers: Sequence[float]) -> torch.Tensor:
        share = shares[r].clone()
        for step in range(k):
            learn(share, step, numbers[step] if step < len(numbers) else 0.0)
        return share

    def problem(got: dict[str, Any], r: int) -> Finding | None:
        did = got["steps"]
        if not did:
            return Finding("train_step is never called")
        if found := evidence(got, plans_of(deaths)):
            return found
        for life, following in zip(got["lives"], got["lives"][1:], strict=False):
            if found := began(life, following):
                return found
        first = did[0]
        if fails[0]:
            if got["raised"]:
                return None
            what = (
                f"save {fails[0]} could not be written (no space left), and your function "
                "returned as if all were well"
            )
            return Finding(what, ADVICE["at the end"][1] if "at the end" in got["noted"] else LOST)
        if did != list(range(first, steps)):
            what = f"it trains the steps {did}; after step {first} come those up to {steps - 1}"
            return Finding(what, "Each of the steps once, in order.")
        for name in ADVICE:
            if name in got["noted"]:
                return Finding(*ADVICE[name])
        if not same(after(first, r, got["numbers"]), got["began with"], 0):
            return weights(got, first, r)
        wanted = (steps - first) // every
        if got["writes"] != wanted:
            return Finding(f"from step {first} on it saves {got['writes']} times, not {wanted}")
        return None

    def began(life: Mapping[str, Any], following: Mapping[str, Any]) -> Finding | None:
        """Say what is wrong with where an attempt began that follows another."""
        if "first" not in following:
            return None
        first, newest = following["first"], life["died"][0] - every
        if first in (newest, newest + every):
            return None
        what = f"it goes on with step {first}; " + (
            f"the newest whole checkpoint was made after {newest} steps"
            if newest
            else "no checkpoint was whole"
        )
        whole = following["found"]["whole"]
        if newest and is_gone(newest, life, whole):
            return Finding(what, GONE)
        if not first:
            return Finding(what, NUMBER if following.get("read") else LOOK)
        made = list(range(every, newest + 1, every))[-len(whole) :]
        if len(made) > 1 and first == made[-2]:
            return Finding(what, (TEXT, TIMES) if first == max(made, key=str) else TIMES)
        if first == max(made, key=str, default=0):
            return Finding(what, TEXT)
        return Finding(what, COUNT if first == every * len(whole) else "")

    def is_gone(newest: int, life: Mapping[str, Any], whole: list[str]) -> bool:
        """Tell whether the newest checkpoint has been removed, or written over."""
        if not whole:
            return True
        made = (newest - life["first"]) // every  # whole ones that this life has made
        return not made and life["found"]["whole"][-1] not in whole

    def weights(got: Mapping[str, Any], first: int, r: int) -> Finding:
        have, numbers = got["began with"], got["numbers"]
        what = f"it goes on with step {first}, but not with the weights of after {first} steps"
        if same(after(0, r, numbers), have, 0):
            return Finding(what, IN_PLACE)
        for k in range(steps + 1):
            if len(have) and same(after(k, r, numbers), have, 0):
                late = k > first and "own thread" in got["noted"]
                return Finding(f"{what}: they are those of after {k}", NO_COPY if late else "")
        torn = "own thread" in got["noted"]
        return Finding(
            f"{what}: {difference(after(first, r, numbers), have, 0)}", NO_COPY if torn else ""
        )

    said = [f"rank {r} killed at event {event} of save {k}" for r, event, k in deaths]
    said += [f"save {fails[0]} fails on rank {rank}"] if fails[0] else []
    return Case(
        f"{tuple(weight.shape)}, {steps} steps, a checkpoint every {every}, "
        + (", then ".join(said) or "not killed"),
        [(Saving(weight, n, steps, every, deaths, fails, plan == "older removed"),)] * n,
        right=problem,
        like={},
        facts={"every": every},
        seconds=20.0,
        shown=f"steps = {steps}, every = {every}",
    )


def gone(case: Case, run: Run) -> bool:
    """Tell a run that fails at loading, after a death in a save that was not the first: nothing is whole."""
    lives = lives_of(run)
    later = half_loaded(case, run) and lives[-2]["died"][0] > case.facts["every"]
    return later and not lives[-1]["found"]["whole"]


def unfinished_loaded(case: Case, run: Run) -> bool:
    """Tell a run that fails at loading what was left of a save, although nothing whole is gone."""
    return half_loaded(case, run) and ".metadata" in str(run.failure) and not gone(case, run)


EXERCISE = Exercise(
    case,
    failed=(
        Failed(".", GONE, died=True, when=gone),
        Failed(".", UNFINISHED, died=True, when=unfinished_loaded),
        LEFT_ALONE,
    ),
    kind=Kind.SCRIPT,
    driver=train_and_save,
    reported=("raised", "steps", "writes", "noted"),
    sizes=(1, 2, 3),
    count=8,
)
