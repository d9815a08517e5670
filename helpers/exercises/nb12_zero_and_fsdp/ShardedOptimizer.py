"""12.1 An optimizer with sharded state (20 min, ●●●○○)

- torch's optimizer creates state for the parameters that you pass. Which parameter should you pass so that it
  creates only this rank's share?
- __init__: flatten all weights with `torch.nn.utils.parameters_to_vector`, pad, `clone()` your slice into a
  Parameter, and create `optimizer_class([shard], **options)`. step: set `shard.grad` to your slice of the
  flat gradients, then call step, all_gather_single and vector_to_parameters.
- size = -(-n // p); own = slice(rank * size, (rank + 1) * size). step: g = torch.cat([q.grad.flatten() for q
  in params]); shard.grad = pad(g, (0, size * p - n))[own].clone(); inner.step(); whole =
  shard.new_empty(size * p); dist.all_gather_single(whole, shard.detach()); vector_to_parameters(whole[:n],
  params). Then shard.grad = None.
"""

import torch

from helpers.checks.author import *
from helpers.exercises.nb12_zero_and_fsdp.in_ranks.counted import (
    SECOND_OPTIMIZERS,
    OptimizerSteps,
    run_optimizer,
)
from helpers.exercises.nb12_zero_and_fsdp.shared import (
    FAILURE_ADVICE,
    draw_shapes,
    flatten_all,
    largest_shard,
)

OPTIMIZERS: tuple[tuple[str, dict[str, float], int], ...] = (
    ("SGD", {"lr": 0.2, "momentum": 0.9}, 1),
    ("SGD", {"lr": 0.3}, 0),
    ("Adam", {"lr": 0.05}, 2),
    ("AdamW", {"lr": 0.04, "weight_decay": 0.3}, 2),
    ("Adagrad", {"lr": 0.1, "eps": 0.01}, 1),
)
"""Each optimizer's name, its options, and its number of state tensors for each weight."""
ADVICE = {
    "state": "The inner optimizer creates state for all its parameters, so give it only one parameter: "
    "this rank's slice of the flat weights. Whole parameters can't be divided evenly, because one may have "
    "most of the elements.",
    "memory": "Your optimizer keeps a copy of all weights or all gradients after step(): in an attribute, "
    "in a different form, or through a view, which keeps its whole storage. `clone()` the slice, and "
    "build whole tensors only inside step().",
}
"""Advice by the name of the observation. The bytes may differ between runs, so no known mistake matches."""


def case(draw: Draw) -> Case:
    n, dtype, shapes = draw.ranks, draw.dtype(torch.float32, torch.float64), draw_shapes(draw, 150)
    name, options, states = OPTIMIZERS[draw.of(*range(len(OPTIMIZERS)))]
    # Far from 0, a step of 1e-6 is smaller than the precision of float32
    size = 1000.0 if dtype == torch.float64 else 1.0
    options = options | {"lr": options["lr"] * size}
    weights, *grads = (
        [torch.randn(s, generator=draw.generator(), dtype=torch.float64).to(dtype) for s in shapes]
        for _ in range(draw.whole(3, 4))
    )
    weights, steps = [w * size for w in weights], len(grads)
    in_place, count = draw.of(True, False), len(flatten_all(weights))
    own, item = largest_shard(count, n), dtype.itemsize
    # step counters, and the rounded-up shares of single parameters
    room = 64 + item * len(shapes)
    whole = "as many elements as all weights or all gradients, flat"
    known = {count * item: whole, own * n * item: f"{whole} and padded"} if n > 1 else {}
    most = (states * own * item + room, (states + 2) * own * item + 2 * room)
    # most cases have one optimizer, because bytes are counted only in those
    second = draw.of(*SECOND_OPTIMIZERS, "", "")
    steppers = 1 + bool(second)
    return Case(
        f"{name}, {plural(steps, 'step')}"
        + f", second optimizer {second}" * bool(second)
        + f", parameters of {', '.join(str(s) for s in shapes)}, {dtype}",
        [(OptimizerSteps(weights, grads, name, options, in_place, most, known, second),)] * n,
        right=Reference(advice=ADVICE),
        facts={
            "count": count,
            "second": "".join([*options][1:]),
            "share": own * item,
            "bytes": steppers * (steps + 1) * n * (own * item + room),
            "calls": steppers * (steps + 1) * n * len(shapes),
        },
    )


def find_excess_traffic(trace: Trace, case: Case) -> str:
    """Return the rank whose calls send new weights more than once in a step."""
    for rank in range(case.world_size):
        calls = [event for event in trace.of(rank) if event.is_collective]
        handed, most = sum(event.nbytes for event in calls), case.facts["bytes"]
        if handed > most:
            return f"rank {rank} sends {handed:,} bytes in total, but {most:,} are enough."
        if len(calls) > case.facts["calls"]:
            return f"rank {rank} makes {len(calls)} calls, but {case.facts['calls']} are enough."
    return ""


EXERCISE = Exercise(
    case,
    (
        OnlyCalls(("all_gather", "broadcast")),
        Calls(
            bytes_per_call="share",
            text="a rank sends only its share",
            why="Each rank updates one slice, and needs to send only this slice.",
        ),
        Predicate(find_excess_traffic, "each new weight is sent once a step"),
        WaitsForAll(),
    ),
    failed=FAILURE_ADVICE,
    kind=Kind.MODULE,
    driver=run_optimizer,
    reported=("state", "memory"),
    sizes=(1, 2, 3, 4, 5),
)
