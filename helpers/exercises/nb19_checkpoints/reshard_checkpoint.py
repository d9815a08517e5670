"""19.2 Four ranks save, two load (10 min, ●●●○○)

- `dcp.load` fills existing tensors. Which tensors does this rank need before loading?
- For each name, create a DTensor of zeros with the whole shape, on `mesh`, with the placements `[Shard(0)]`.
  Then pass the dict to `dcp.load`.
- state = {name: zeros(shape, device_mesh=mesh, placements=[Shard(0)]) for name, shape in shapes.items()};
  dcp.load(state, checkpoint_id=folder); return state. Import `zeros` from torch.distributed.tensor, not from
  torch.
"""

from typing import Any

import torch

from helpers.checks.author import *
from helpers.exercises.nb19_checkpoints.in_ranks.reshard import run_reshard
from helpers.ranks.failures import RankFailed

SHAPES_ADVICE = (
    "Create your DTensors with the whole shapes: `zeros(shape, device_mesh=mesh, placements=[Shard(0)])` "
    "can split any number of rows, but `DTensor.from_local` assumes equal parts."
)


def case(draw: Draw) -> Case:
    n = draw.ranks
    after = draw.whole(1, n)
    before = n if after < n else draw.whole(1, n)
    rows = draw.of(after * draw.whole(1, 3), after * draw.whole(1, 3) + 1, max(1, after - 1), 7, 13)
    shapes = {
        draw.of("embedding", "weight"): (rows, draw.whole(1, 4)),
        "bias": (draw.of(1, 5, 9, 17),),
        **({"cube": (draw.whole(2, 5), 2, 3)} if draw.of(True, False) else {}),
    }
    whole = {name: draw.tensor(shape, torch.float32) for name, shape in shapes.items()}
    own = [
        {
            name: (*tensor.chunk(after), *[tensor[:0]] * after)[rank]
            for name, tensor in whole.items()
        }
        for rank in range(after)
    ]

    def problem(got: Any, rank: int) -> Finding | None:
        if rank >= after:
            return None
        if "returned" in got:
            what = f"it returns {got['returned']}"
            return Finding(what, "Return the dict from each name to its DTensor.")
        for name in shapes:
            if found := judge_tensor(name, got.get(name), own[rank][name], shapes[name]):
                return found
        more = sorted(set(got) - {*shapes, "elements read"})
        if more:
            return Finding(f"the dict has additional names: {', '.join(more)}")
        share = sum(part.numel() for part in own[rank].values())
        read = got["elements read"]
        if type(read) is not int or read < share:
            # the rank's share is right, so the rank has read at least the share
            return Finding(
                f"the rank reads {read} elements from the checkpoint, but its rows have {share}"
            )
        if read > share:
            what = f"the rank reads {read} elements from the checkpoint, but its rows have only {share}"
            return Finding(what)
        return None

    return Case(
        f"saved by {plural(before, 'rank')}, loaded by {after}; {', '.join(map(str, shapes.values()))}",
        [(whole if rank < before else {}, shapes, before, after) for rank in range(n)],
        right=problem,
        like=PerRank([{} if rank < after else None for rank in range(n)]),
        init=False,
        shown=f"folder, {shapes}, a mesh of {plural(after, 'rank')}",
    )


def judge_tensor(
    name: str, told: Any, right: torch.Tensor, shape: tuple[int, ...]
) -> Finding | None:
    """Return the problem with one tensor of a rank."""
    if told is None:
        return Finding(f"the key {name!r} is missing")
    if "local" not in told:
        return Finding(
            f"{name} is a plain {told['placement']} instead of a DTensor on `mesh`, Shard(0)"
        )
    if not told["on mesh"]:
        return Finding(f"{name} is on a different mesh", "Create the DTensors on the given `mesh`.")
    if told["placement"] != "(Shard(dim=0),)":
        what = f"{name} has placement {told['placement']}, not Shard(0)"
        return Finding(what)
    if list(told["shape"]) != list(shape):
        return Finding(f"{name} has the shape {tuple(told['shape'])}, not {shape}", SHAPES_ADVICE)
    local = told["local"]
    if right.any() and local.shape == right.shape and not local.any():
        return Finding(f"{name} is still zero")
    problem = difference(right, local, 0)
    return Finding(f"{name}: {problem}") if problem else None


def raised_in_load(case: Case, run: Run) -> bool:
    """Return whether `dcp.load` raised the error."""
    failure = run.failure
    frames = failure.error.frames[-1:] if isinstance(failure, RankFailed) else ()
    return any("load(" in place.source for place in frames)


EXERCISE = Exercise(
    case,
    failed=(CrashAdvice("[Ss]ize|shape|stride", SHAPES_ADVICE, when=raised_in_load),),
    kind=Kind.MODULE,
    driver=run_reshard,
    reported=("elements read",),
    sizes=(1, 2, 3, 4),
    count=12,
)
