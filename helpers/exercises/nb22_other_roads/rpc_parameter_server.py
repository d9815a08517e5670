"""22.2 A server that asks (12 min, ●●●○○, further)

- Your function runs on the server alone. In each step it asks every trainer one question: what is your
  gradient at these weights?
- `rpc.rpc_async(trainer, gradient, args=(w,))` starts a call and returns a future. Start all calls of a
  step, and only then `wait()` for each future.
- futures = [rpc.rpc_async(t, gradient, args=(w,)) for t in trainers]; mean = sum(f.wait() for f in futures) /
  len(trainers); w = w - lr * mean. All this `steps` times.
"""

from typing import Any

import torch

from helpers.checks.author import *
from helpers.exercises.nb22_other_roads.in_ranks.rpc import serve


def case(draw: Draw) -> Case:
    trainers, steps, lr = draw.ranks - 1, draw.of(1, 2, 3, 4), draw.of(0.5, 0.25, 0.1)
    shape, dtype = draw.shape(least=1), draw.dtype(torch.float32, torch.float64)
    weights, *targets = (draw.tensor(shape, dtype, 1.0) for _ in range(trainers + 1))

    scale, wanted = largest(weights, *targets), weights
    for _ in range(steps):
        wanted = wanted - lr * (wanted - torch.stack(targets).mean(0))

    def problem(got: dict[str, Any], rank: int) -> Finding | None:
        if rank:
            return None
        if found := of_calls(got["asked"], steps, trainers):
            return Finding(found)
        if got["changed"]:
            return Finding(CHANGED)
        if got["unlike"]:
            return Finding(UNLIKE)
        if got["weights"] is None:
            return Finding("nothing is returned; return the weights after the last step")
        if wrong := difference(wanted, got["weights"], scale=scale):
            return Finding(f"the weights are not right: {wrong}")
        if not got["kept"]:
            return Finding("`weights` itself was changed; make new weights: w = w - lr * mean")
        return Finding(ALONE) if got["alone"] else None

    return Case(
        f"a server and {plural(trainers, 'trainer')}, {plural(steps, 'step')} of {lr}",
        [(weights, torch.stack([weights, *targets]), steps, lr)] * draw.ranks,
        right=problem,
        like=Each([{}, *[None] * trainers]),
        facts={"trainers": trainers},
        init=False,
        seconds=15.0,
        shown=f"trainers, weights, gradient, {steps}, {lr}",
    )


def of_calls(asked: list[int], steps: int, trainers: int) -> str:
    """Return which trainers were asked too often or too rarely."""
    if asked[0] != 0:
        return (
            "`gradient` was called on the server itself; the data is on the trainers. Name a trainer: "
            "rpc.rpc_async(trainer, gradient, args=(w,))"
        )
    for trainer in range(1, trainers + 1):
        if (count := asked[trainer]) != steps:
            return (
                f"trainer{trainer} was asked {plural(count, 'time')}; once in each of the "
                f"{plural(steps, 'step')} is right"
            )
    return ""


CHANGED = (
    "a tensor was changed in place while a call that carries it was still in flight: `rpc_async` makes no "
    "copy. Wait for all answers of the step first, then change it; or make new weights: w = w - lr * mean"
)
UNLIKE = (
    "in one step the trainers were asked at different weights. Send all of them the same w, and "
    "change it once all have answered"
)
ALONE = (
    "right, but one trainer works while the others wait to be asked: start all the calls of a step by "
    "`rpc_async`, keep the futures, and only then wait for them"
)
UP = "RPC is up already: every process has joined before your function is called."

EXERCISE = Exercise(
    case,
    failed=(
        Failed("in init_rpc|already initialized", UP),
        Failed(
            "shutdown|not been initialized",
            "The check shuts RPC down itself, after your function has returned.",
        ),
        Failed(
            "Unknown destination worker",
            "The names of the processes are in `trainers`, as strings.",
        ),
    ),
    kind=Kind.MODULE,
    driver=serve,
    reported=("asked", "alone", "unlike", "changed", "kept"),
    sizes=(2, 3, 4),
    count=12,
)
