"""6.1 Share the best (10 min, ●●○○○)

- To find the best rank, you need the losses, but each rank only has its own. Before the ranks act on the
  losses, every rank must know all of them.
- `all_gather` the losses. Then every rank has the same list and finds the same winner, so all ranks can call
  `broadcast(weight, src=winner)`.
- losses = [torch.empty_like(loss) for _ in range(world_size)]; dist.all_gather(losses, loss); winner =
  losses.index(min(losses)), the lowest rank if several are equal; broadcast; return weight and
  torch.cat(losses).mean().
"""

from typing import Any

import torch

from helpers.checks.author import *

CLOSE_LOSSES = "near each other"
MEAN_TOLERANCE = {torch.float16: 4e-3, torch.bfloat16: 3e-2}
"""The allowed relative error of a mean. In other dtypes, the allowed error is 1e-6."""


def case(draw: Draw) -> Case:
    n, kind = draw.ranks, draw.of("positive", "negative", "a tie", CLOSE_LOSSES)
    dtype = torch.float64 if kind == CLOSE_LOSSES else draw.dtype(*FLOATS)
    numbers = torch.tensor(draw.rng.sample(range(4, 400), n), dtype=torch.float64) / 7
    if kind == CLOSE_LOSSES:
        numbers = 1 + numbers * 1e-12
    numbers -= 100 * (kind == "negative")
    places, best = numbers.sort().indices.tolist(), draw.rank()
    numbers[[best, places[0]]] = numbers[[places[0], best]]
    if kind == "a tie" and best < n - 1:
        numbers[draw.whole(best + 1, n - 1)] = numbers[best]
    losses = list(numbers.to(dtype).split(1))
    values = torch.cat(losses)
    best = int(values.argmin())
    shape = draw.of((150,), (12, 14), (5, 6, 7))
    weights = draw.tensors(shape, draw.dtype(*FLOATS))
    mean = values.double().mean().item()

    def judge(got: Any, rank: int) -> Finding | None:
        if not isinstance(got, (list, tuple)) or len(got) != 2:
            return Finding("return two things: the weights and the mean")
        if problem := difference(weights[best], got[0], 0, "weights"):
            return Finding(problem)
        problem = difference(mean, got[1], MEAN_TOLERANCE.get(dtype, 1e-6), "mean")
        return Finding(problem) if problem else None

    return Case(
        f"weights {tuple(shape)} of {weights[0].dtype}, losses {kind}, rank {best} is best",
        list(zip(losses, weights, strict=True)),
        right=judge,
    )


def find_weights_outside_broadcast(trace: Trace, case: Case) -> str:
    size = case.given[0][1].nbytes
    for rank in range(case.world_size):
        others = [e for e in trace.of(rank) if e.is_collective and e.op != "broadcast"]
        if sum(event.nbytes for event in others) >= size:
            return (
                f"rank {rank} passes as many bytes as all its weights to {others[-1].call}; only the best "
                "rank's weights are needed, and one broadcast sends them."
            )
    return ""


EXERCISE = Exercise(
    case,
    (
        WaitsForAll(),
        OnlyCalls(("all_gather", "all_reduce", "broadcast")),
        Calls("broadcast", 1),
        Predicate(
            find_weights_outside_broadcast, "only the broadcast carries weights", forbids=True
        ),
    ),
)
