"""12.5 Muon on shards (20 min, ●●●○○, further)

- The momentum of a row doesn't depend on other rows, so each rank can update its shards without
  communicating. Which part of the step needs the whole matrix, and on how many ranks? And how can all ranks
  find the same owners without sending anything?
- Find the owners first: start with loads = [0] * n, and assign the next matrix to loads.index(min(loads)).
  Then write three loops over the matrices. The first updates each momentum and gathers it to its owner, the
  second orthogonalizes on the owner, and the third scatters the rows of the result.
- for i in sorted(range(len(params)), key=lambda i: -params[i].numel()): owner[i] = loads.index(min(loads));
  loads[owner[i]] += params[i].numel(). First loop: m.mul_(momentum).add_(params[i].grad.to_local());
  dist.gather(m, parts, dst=owner[i]), where parts is a list of n tensors like m on the owner and None
  elsewhere. Second: rows = list(orthogonalize(torch.cat(parts)).chunk(n)). Third: own =
  torch.empty_like(m); dist.scatter(own, rows or None, src=owner[i]); p.to_local().sub_(lr * max(1,
  p.shape[0] / p.shape[1]) ** 0.5 * own).
"""

import torch

from helpers.checks.author import *
from helpers.exercises.nb12_zero_and_fsdp.in_ranks.muon import MuonInputs, run_muon
from helpers.exercises.nb12_zero_and_fsdp.shared import SAME_CALLS_ADVICE, TWO_DTYPES_ADVICE

CONCURRENT_OWNERS_ADVICE = (
    "An owner then waits until another owner has orthogonalized its matrix, so only one rank works at a "
    "time. Gather all matrices first, then orthogonalize, then scatter the updates."
)
ADVICE = {
    "matrices passed to orthogonalize": "These are the shapes of all matrices that this rank passed to "
    "`orthogonalize`. The owner of `params[i]` passes the whole matrix once in each step, and no other rank "
    "does. Owners are chosen by size: the largest matrix first, each to the rank with the fewest elements "
    "so far.",
    "params": "Pass `orthogonalize` the whole momentum of a matrix, gathered after each rank has updated "
    "its shard. Then subtract `lr` times the factor times this rank's rows of the result from the weights, "
    "in place. Use the factor of the whole matrix.",
    "momenta": "Each rank updates its shards of all momenta in place: `momentum` * m + gradient.",
}


def part_advice(name: str, parts: Parts) -> str:
    """Return the advice for the part of this name, such as "momenta[1]"."""
    return ADVICE.get(name.partition("[")[0], "")


def case(draw: Draw) -> Case:
    n, dtype, generator = draw.ranks, draw.dtype(torch.float32, torch.float64), draw.generator()
    count, steps = draw.of(n, n + 1, 2 * n + 1, max(1, n - 1)), draw.of(2, 2, 3)
    shapes = [(n * draw.of(1, 2, 3), draw.whole(2, 7)) for _ in range(count)]
    lr, momentum = draw.of(0.1, 0.02), draw.of(0.9, 0.5)
    weights, *grads = (
        [torch.randn(s, generator=generator, dtype=torch.float64).to(dtype) for s in shapes]
        for _ in range(steps + 1)
    )

    def rows(matrices: list[torch.Tensor], rank: int) -> list[torch.Tensor]:
        return [x.chunk(n)[rank].clone() for x in matrices]

    # each rank passes its shards to gather, and its own matrices to scatter
    shards = sum(w.nbytes for w in weights) // n
    owned = [0] * n
    for owner, w in zip(owners_by_size([w.numel() for w in weights], n), weights, strict=True):
        owned[owner] += w.nbytes
    most = [steps * (shards + nbytes) for nbytes in owned]
    return Case(
        f"shapes {', '.join(map(str, shapes))}, {plural(steps, 'step')}, {dtype}",
        [
            (MuonInputs(rows(weights, r), [rows(g, r) for g in grads], lr, momentum),)
            for r in range(n)
        ],
        right=Reference(3 * largest(*weights), part_advice),
        facts={"most": most},
        telling=len({r * c for r, c in shapes}) > 1,
        shown=f"params, momenta, lr={lr}, momentum={momentum}, orthogonalize",
    )


def owners_by_size(sizes: list[int], ranks: int) -> list[int]:
    """Return each matrix's owner: starting with the largest, the rank with the fewest elements so far."""
    loads, owners = [0] * ranks, [0] * len(sizes)
    for i in sorted(range(len(sizes)), key=lambda i: (-sizes[i], i)):
        owners[i] = loads.index(min(loads))
        loads[owners[i]] += sizes[i]
    return owners


def find_serial_owners(trace: Trace, case: Case) -> str:
    """Return the rank that makes the owners work one after another."""
    for rank in range(case.world_size):
        steps: list[list[str]] = []
        for event in sorted(trace.of(rank), key=lambda e: e.start_ns):
            if event.op == "span" and event.call.startswith("step "):
                steps.append([])
            elif steps:
                steps[-1].append(event.call if event.op == "span" else event.op)
        for step, ops in enumerate(steps, 1):
            # all gathers come first, then this rank's matrices, then all scatters
            for late, early in (
                ("gather", "orthogonalize"),
                ("gather", "scatter"),
                ("orthogonalize", "scatter"),
            ):
                if early in ops and late in ops[ops.index(early) :]:
                    return (
                        f"rank {rank} calls {late} after {early} in step {step}. "
                        f"{CONCURRENT_OWNERS_ADVICE}"
                    )
            first = ops.index("orthogonalize") if "orthogonalize" in ops else 0
            before, after = ops[:first].count("all_to_all"), ops[first:].count("all_to_all")
            if first and before != after:
                return (
                    f"rank {rank} calls all_to_all {before} times before it orthogonalizes, and {after} "
                    f"times afterwards, in step {step}. {CONCURRENT_OWNERS_ADVICE}"
                )
    return ""


EXERCISE = Exercise(
    case,
    (
        OnlyCalls(("gather", "scatter", "all_to_all")),
        Predicate(find_serial_owners, "all owners work at the same time"),
        Calls(
            total_bytes=lambda case, rank: int(case.facts["most"][rank]),
            why="A rank sends its shard of a momentum to the owner, and gets back its rows of the update.",
        ),
        WaitsForAll(),
    ),
    failed=(
        CrashAdvice(
            "gather_list|scatter_list",
            "Only the owner passes a list. `dst` and `src` are rank 0 unless you name the owner.",
        ),
        CrashAdvice(
            "Boolean value of Tensor",
            "scatter takes a list of tensors, one for each rank: list(whole.chunk(n)).",
        ),
        CrashAdvice(
            "DTensor",
            "Plain tensors do not mix with DTensors. `p.to_local()` and `p.grad.to_local()` return "
            "this rank's rows as plain tensors.",
        ),
        CrashAdvice("dtype|tensor type|scalar type", TWO_DTYPES_ADVICE),
        CrashAdvice(
            "alltoall: invalid tensor size",
            "gloo's `all_to_all` takes tensors of one shape, but these matrices differ. Join them in one "
            "flat tensor, and call `all_to_all_single` with the number of elements for each rank.",
        ),
        CrashAdvice(
            r"size|Check failed|shape|split",
            "In a gather or scatter of one matrix, all tensors have the shape of a shard, "
            "`momenta[i].shape`, and there is one for each rank. For all_to_all_single, both sides must "
            "pass the same lengths.",
            applies_if_killed=True,
        ),
        HangAdvice(SAME_CALLS_ADVICE),
    ),
    kind=Kind.MODULE,
    driver=run_muon,
    reported=("matrices passed to orthogonalize",),
    sizes=(1, 2, 3, 4, 5, 6),
    count=18,
)
