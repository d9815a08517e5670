"""17.5 Which group averages which gradients (12 min, ●●●○○, further)

- Which ranks hold the same expert? And which ranks' tokens are already included in the gradient of one copy?
- Shared parameters need the mean over all ranks. Experts need the sum over the ranks with the same expert,
  rank % ep, divided by the world size. That's because every rank's loss is a mean over its own tokens, and
  there are world_size losses.
- Create all groups on all ranks: groups = [dist.new_group(list(range(e, world_size, ep))) for e in
  range(ep)]; all_reduce(p.grad, group=groups[rank % ep]); p.grad /= world_size.
"""

import torch

from helpers.checks.author import *
from helpers.exercises.nb17_expert_parallel.in_ranks import run_gradients
from helpers.exercises.shared.crash_advice import GROUP_AS_OP


def case(draw: Draw) -> Case:
    n = draw.ranks
    ep = draw.of(*(size for size in range(1, n + 1) if n % size == 0))
    dtype = draw.dtype(torch.float64, torch.float32)
    shapes = [draw.shape((1, 2), 1) for _ in range(draw.whole(1, 2))]
    expert_shapes = [draw.shape((1, 2), 1) for _ in range(draw.whole(1, 2))]
    shared = [draw.tensors(shape, dtype) for shape in shapes]
    experts = [draw.tensors(shape, dtype) for shape in expert_shapes]
    line = [[r for r in range(n) if r % ep == rank % ep] for rank in range(n)]
    size = {
        f"{kind} {i}": n * largest(*own)
        for kind, grads in (("shared", shared), ("expert", experts))
        for i, own in enumerate(grads)
    }
    return Case(
        f"ep {ep}, dp {n // ep}, {len(shapes)} shared and {len(expert_shapes)} of an expert, {dtype}",
        [(ep, [own[rank] for own in shared], [own[rank] for own in experts]) for rank in range(n)],
        right=Reference(size),
        facts={
            "ep": ep,
            "lines": line,
            "shared": sum(own[0].nbytes for own in shared),
            "experts": sum(own[0].nbytes for own in experts),
            "neighbors": ep,
        },
    )


def find_misplaced_gradient(trace: Trace, case: Case) -> str:
    """Return the rank that does not pass each gradient exactly once to the group that it belongs to."""
    for rank in range(case.world_size):
        line, everybody = case.facts["lines"][rank], list(range(case.world_size))
        calls = [e for e in trace.of(rank) if e.is_collective and len(e.group_ranks) > 1]
        for e in calls:
            if list(e.group_ranks) not in (line, everybody):
                return (
                    f"rank {rank} calls {e.call}{at(e)} in a group of ranks "
                    f"{', '.join(map(str, e.group_ranks))}, but it belongs only to the group of its expert, "
                    f"{', '.join(map(str, line))}, and to the group of all ranks."
                )
        most = (case.facts["shared"] + case.facts["experts"]) * (case.world_size > 1)
        sent = sum(e.nbytes for e in calls)
        if sent > most:
            return (
                f"rank {rank} passes {sent:,} bytes to its calls, but its gradients have {most:,}, and each "
                "should be sent once."
            )
    return ""


EXERCISE = Exercise(
    case,
    (
        OnlyCalls(("all_reduce",)),
        Predicate(
            find_misplaced_gradient,
            "each gradient is summed once, in its group",
        ),
        WaitsForAll(),
    ),
    failed=(
        GROUP_AS_OP,
        HangAdvice("All members of a group must make the same calls in it, in the same order."),
    ),
    kind=Kind.MODULE,
    driver=run_gradients,
    reported=("weights",),
    sizes=(1, 2, 4, 6),
    count=16,
)
