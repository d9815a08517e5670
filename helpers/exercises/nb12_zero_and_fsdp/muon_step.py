"""12.5 Muon on shards (15 min, ●●●○○, further)

- The momentum of a row needs no other row, so each rank updates its shards alone. Which part of the step
  needs the whole matrix, and on how many ranks?
- Write three loops over the matrices. The first updates each momentum and gathers it to its owner; the
  second orthogonalizes on the owner; the third scatters the rows of the result.
- First: m.mul_(momentum).add_(params[i].grad.to_local()); dist.gather(m, parts, dst=i % n), where parts is
  a list of n tensors like m on the owner and None elsewhere. Second: rows =
  list(orthogonalize(torch.cat(parts)).chunk(n)). Third: own = torch.empty_like(m); dist.scatter(own, rows
  or None, src=i % n); p.to_local().sub_(lr * own).
"""

import torch

from helpers.checks.author import *
from helpers.exercises.nb12_zero_and_fsdp.in_ranks.muon import MuonInputs, run_muon
from helpers.exercises.nb12_zero_and_fsdp.shared import SAME_CALLS_ADVICE, TWO_DTYPES_ADVICE

CONCURRENT_OWNERS_ADVICE = (
    "The owner of the next matrix waits until this one is orthogonalized, so one rank works at a time. "
    "Gather the matrices of all owners, then orthogonalize, then scatter the updates."
)
ADVICE = {
    "matrices passed to orthogonalize": "These are the shapes of all matrices that this rank passed to "
    "`orthogonalize`. The owner of `params[i]`, rank i % n, passes the whole matrix once in each step, and "
    "no other rank does.",
    "params": "`orthogonalize` takes the whole momentum of a matrix, gathered after each rank has updated "
    "its shard. The weights lose `lr` times the rows of the result, in place.",
    "momenta": "Each rank updates its shards of all momenta in place: `momentum` * m + gradient.",
}


def part_advice(name: str, parts: Parts) -> str:
    """Return what to do about the part of this name, such as "momenta[1]"."""
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
    most = [steps * (shards + sum(w.nbytes for w in weights[r::n])) for r in range(n)]
    return Case(
        f"shapes {', '.join(map(str, shapes))}, {plural(steps, 'step')}, {dtype}",
        [
            (MuonInputs(rows(weights, r), [rows(g, r) for g in grads], lr, momentum),)
            for r in range(n)
        ],
        right=Reference(3 * largest(*weights), part_advice),
        facts={"most": most, "count": count},
        shown=f"params, momenta, lr={lr}, momentum={momentum}, orthogonalize",
    )


def find_serial_owners(trace: Trace, case: Case) -> str:
    """Return which rank lets the owners work one after the other."""
    n, rounds = case.world_size, -(-int(case.facts["count"]) // case.world_size)
    for rank in range(n):
        steps: list[list[str]] = []
        for event in sorted(trace.of(rank), key=lambda e: e.start_ns):
            if event.op == "span" and event.call.startswith("step "):
                steps.append([])
            elif steps:
                steps[-1].append(event.call if event.op == "span" else event.op)
        for step, ops in enumerate(steps, 1):
            gathered = [
                ops[:k].count("gather") for k, op in enumerate(ops) if op == "orthogonalize"
            ]
            before = [ops[:k].count("scatter") for k, op in enumerate(ops) if op == "gather"]
            # before an owner orthogonalizes its k-th matrix, those of k rounds must be in flight
            if any(k < min(n * own, len(before)) for own, k in enumerate(gathered, 1)):
                return (
                    f"rank {rank} calls gather after orthogonalize in step {step}. "
                    f"{CONCURRENT_OWNERS_ADVICE}"
                )
            # before the k-th gather, only whole rounds of n owners may be done
            if any(scattered > k // n * n for k, scattered in enumerate(before)):
                return f"rank {rank} calls gather after scatter in step {step}. {CONCURRENT_OWNERS_ADVICE}"
            if ops.count("all_to_all") > 2 * rounds:
                return (
                    f"rank {rank} calls all_to_all more than {2 * rounds} times in step {step}. "
                    f"{CONCURRENT_OWNERS_ADVICE}"
                )
    return ""


EXERCISE = Exercise(
    case,
    (
        OnlyCalls(("gather", "scatter", "all_to_all")),
        Predicate(find_serial_owners, "all owners work at the same time"),
        Calls(
            total_bytes=lambda case, rank: int(case.facts["most"][rank]),
            why="A rank sends its shard of a momentum to the owner, which sends back its rows of the update.",
        ),
        WaitsForAll(),
    ),
    failed=(
        CrashAdvice(
            "gather_list|scatter_list",
            "Only the owner passes a list. `dst` and `src` are rank 0 unless you name the owner, i % n.",
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
            "In a gather or scatter of one matrix all tensors have the shape of a shard, `momenta[i].shape`, "
            "and there is one for each rank. For all_to_all_single, both sides must name the same lengths.",
            died=True,
        ),
        HangAdvice(SAME_CALLS_ADVICE),
    ),
    kind=Kind.MODULE,
    driver=run_muon,
    reported=("matrices passed to orthogonalize",),
    sizes=(1, 2, 3, 4, 5, 6),
    count=18,
)
