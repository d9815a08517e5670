"""19.3 Write beside the training (15 min, ●●●○○, further)

- What must be whole, and under which name, when a rank is killed while it writes? And who may talk on which
  group while two threads do?
- Each checkpoint gets a folder of its own, named by the steps done. A folder that has a `.metadata` is whole:
  load the newest of those first. Keep the future of a save, and ask for its `result()` before the next one.
- whole = [p for p in Path(folder).iterdir() if (p / ".metadata").exists()]; newest = max(whole, key=lambda p:
  int(p.name)); dcp.load(state, checkpoint_id=newest). In the loop, every `every` steps: if earlier:
  earlier.result(); earlier = dcp.async_save(state, checkpoint_id=f"{folder}/{n + 1}", process_group=group).
  After the loop: earlier.result().
"""

from typing import Any

import torch

from helpers.checks.author import *
from helpers.exercises.nb19_checkpoints.in_ranks import beside, learn
from helpers.ranks.failures import RankFailed
from helpers.ranks.run import Run

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
    "A whole checkpoint was there: is the newest one looked for in `folder`, and loaded, before the first "
    "step?"
)
TEXT = "Compare the numbers of steps as numbers: as texts, '5' comes after '10'."
IN_PLACE = (
    "They are those that every job begins with. `dcp.load` fills the tensors of the dict that it is given: "
    "give it `state`."
)
TORN = (
    "What is left cannot be loaded, after a rank was killed while it wrote. Has each checkpoint a folder of "
    "its own? Is a folder without a `.metadata` left alone?"
)


def case(draw: Draw) -> Case:
    n, every = draw.ranks, draw.of(2, 5, 6)
    steps = 4 * every
    weight = draw.tensor((draw.of(n, 2 * n + 1, 3 * n), 2), torch.float32, 1.0)
    rank, event, save = draw.rank(), draw.of(0, 1, 2, 4, 6, 7, 8), draw.of(2, 3, 3)
    if rank:
        event = (
            event and (event - 1) % 3 + 1
        )  # it writes one file; rank 0 then one more, the metadata
    shares = [weight.chunk(n)[r] if r < len(weight.chunk(n)) else weight[:0] for r in range(n)]

    def after(k: int, r: int) -> torch.Tensor:
        share = shares[r].clone()
        for step in range(k):
            learn(share, step)
        return share

    def problem(got: dict[str, Any], r: int) -> Finding | None:
        did = got["steps"]
        if not did:
            return Finding("train_step is never called")
        first = did[0]
        if did != list(range(first, steps)):
            what = f"it trains the steps {did}; after step {first} come those up to {steps - 1}"
            return Finding(what, "Each of the steps once, in order.")
        for name in ADVICE:
            if name in got["noted"]:
                return Finding(*ADVICE[name])
        may = ((save - 1) * every, save * every) if got["died"] else (0,)
        if first not in may:
            what = f"it goes on with step {first}; the newest whole checkpoint was made after {may[0]} steps"
            as_text = max(range(every, may[0] + 1, every), key=str, default=0)
            return Finding(what, LOOK if first == 0 else TEXT if first == as_text else "")
        if not same(after(first, r), got["began with"], 0):
            return weights(got["began with"], first, r)
        wanted = (steps - first) // every
        if got["writes"] != wanted:
            return Finding(f"from step {first} on it saves {got['writes']} times, not {wanted}")
        return None

    def weights(have: torch.Tensor, first: int, r: int) -> Finding:
        what = f"it goes on with step {first}, but not with the weights of after {first} steps"
        if same(after(0, r), have, 0):
            return Finding(what, IN_PLACE)
        for k in range(steps + 1):
            if len(have) and same(after(k, r), have, 0):
                return Finding(f"{what}: they are those of after {k}")
        return Finding(f"{what}: {difference(after(first, r), have, 0)}")

    killed = f"rank {rank} killed at event {event} of save {save}" if event else "not killed"
    return Case(
        f"{tuple(weight.shape)}, {steps} steps, a checkpoint every {every}, {killed}",
        [(weight, n, steps, every, (rank, event, save))] * n,
        right=problem,
        like={},
        seconds=20.0,
        shown=f"steps = {steps}, every = {every}",
    )


def in_a_save(case: Case, run: Run) -> bool:
    """Tell whether the job was killed while it wrote, and cannot load what is left."""
    told = run.values[0]
    error = run.failure.error if isinstance(run.failure, RankFailed) else None
    loads = error is None or any("load(" in place.source for place in error.frames[-1:])
    return isinstance(told, dict) and bool(told.get("died")) and loads


EXERCISE = Exercise(
    case,
    failed=(Failed(".", TORN, died=True, when=in_a_save),),
    kind=Kind.SCRIPT,
    programme=beside,
    sizes=(1, 2, 3),
    count=7,
)
