"""23.2 Data and tensor parallel (20 min, ●●●○○)

- Which ranks must see the same samples? Which ranks hold the same part of a weight? Each of these questions
  is answered by one of the two groups.
- Broadcast both weights from rank 0 to all ranks, then split them by creating a Block on mesh['tp']. In each
  step, select the share of the batch that belongs to your dp coordinate, run forward and backward, all_reduce
  each gradient with AVG in the dp group, run the optimizer step, and append clones of the two parts to the
  list.
- mesh = init_device_mesh('cpu', (world_size // tp, tp), mesh_dim_names=('dp', 'tp')); dp = mesh['dp'];
  block = Block(up, down, mesh['tp']); own = the slice of `share` samples starting at step * batch_size +
  dp.get_local_rank() * share; dist.all_reduce(p.grad, op=dist.ReduceOp.AVG, group=dp.get_group()).
"""

from collections.abc import Sequence

import torch
from torch.nn.functional import cross_entropy

from helpers.checks.author import *
from helpers.exercises.nb23_capstone.in_ranks.layout import Training, run_training
from helpers.exercises.nb23_capstone.shared import mesh_line
from helpers.exercises.shared.crash_advice import GROUP_AS_OP

Pair = tuple[torch.Tensor, torch.Tensor]
"""The weights of `up` and `down`, either whole or one rank's parts."""
TP_CHOICES = {1: (1,), 2: (1, 2), 4: (2, 2, 2, 1, 4), 6: (2, 3), 8: (2, 4)}


def case(draw: Draw) -> Case:
    n = draw.ranks
    tp = draw.of(*TP_CHOICES[n])
    dp, share, steps, lr = n // tp, draw.whole(1, 4), draw.whole(2, 4), draw.of(0.5, 0.25, 0.1)
    hidden = tp * draw.whole(1, 3)
    pixels, classes, size = draw.whole(2, 5), draw.whole(2, 4), dp * share
    dtype, generator = draw.dtype(torch.float64, torch.float32), draw.generator()

    def normal(*shape: int) -> torch.Tensor:
        return torch.randn(shape, generator=generator, dtype=dtype)

    starts = [(normal(hidden, pixels), normal(classes, hidden)) for _ in range(n)]
    count = steps * size + draw.of(0, 3)
    x, y = normal(count, pixels), torch.randint(classes, (count,), generator=generator)
    after = train_in_one_process(starts[0], x, y, size, steps, lr)
    scale, parts = (
        max(1.0, *(largest(*pair) for pair in after)),
        [cut_weights(pair, tp) for pair in after],
    )
    right = [
        {"list": ""}
        | {
            f"{name} after step {step}": pairs[r % tp][i]
            for step, pairs in enumerate(parts, 1)
            for i, name in enumerate(("up", "down"))
        }
        for r in range(n)
    ]
    begin = cut_weights(starts[0], tp)
    in_dp, in_tp = ([mesh_line((dp, tp), dim, r)[1] for r in range(n)] for dim in (0, 1))
    return Case(
        f"dp {dp}, tp {tp}, {hidden} hidden, {plural(steps, 'step')} of {plural(size, 'sample')}, {dtype}",
        [(Training(tp, *start, x, y, size, steps, lr),) for start in starts],
        right=NamedParts(right, scale=scale),
        facts={
            "groups": (in_dp, in_tp),
            "outputs": share * classes * x.element_size(),
            "gradients": [sum(part.nbytes for part in begin[r % tp]) for r in range(n)],
            "weights": sum(part.nbytes for part in starts[0]),
            "steps": steps,
        },
    )


def cut_weights(whole: Pair, tp: int) -> list[Pair]:
    """Cut both weights for each tp coordinate."""
    pairs = zip(whole[0].chunk(tp), whole[1].chunk(tp, dim=1), strict=True)
    return [(rows.clone(), columns.clone()) for rows, columns in pairs]


def train_in_one_process(
    start: Pair, x: torch.Tensor, y: torch.Tensor, size: int, steps: int, lr: float
) -> list[Pair]:
    """Train in one process; return both weights after every step."""
    up, down = (part.clone().requires_grad_() for part in start)
    optimizer, after = torch.optim.SGD([up, down], lr), []
    for xs, ys, _ in zip(x.split(size), y.split(size), range(steps), strict=False):
        optimizer.zero_grad()
        cross_entropy(torch.relu(xs @ up.T) @ down.T, ys).backward()
        optimizer.step()
        after.append((up.detach().clone(), down.detach().clone()))
    return after


def find_misplaced_data(trace: Trace, case: Case) -> str:
    """Return the call that sends data that does not belong in its group."""
    facts, steps = case.facts, case.facts["steps"]
    for rank in range(case.world_size):
        dp_group, tp_group = (lines[rank] for lines in facts["groups"])
        calls = [e for e in trace.of(rank) if e.op not in {"span", "barrier"}]
        sent = sum(e.nbytes for e in calls if e.op in INITIAL_CALLS)
        if sent > 2 * facts["weights"]:
            return (
                f"rank {rank} passes {sent:,} bytes to broadcasts, but the weights have {facts['weights']:,} "
                "and should be broadcast once, before the first step."
            )
        calls = [e for e in calls if e.op not in INITIAL_CALLS and len(e.group_ranks) > 1]
        outputs, gradients = facts["outputs"], facts["gradients"][rank]
        for e in calls:
            group = list(e.group_ranks)
            if group not in (dp_group, tp_group):
                return (
                    f"{describe_call(e)} in a group of ranks {join_ranks(group)}, but its dp group is "
                    f"{join_ranks(dp_group)}, and its tp group is {join_ranks(tp_group)}."
                )
            if group == tp_group and e.nbytes > outputs:
                return (
                    f"{describe_call(e)} with {e.nbytes:,} bytes in its tp group, ranks "
                    f"{join_ranks(tp_group)}. The output for its samples has only {outputs:,} bytes. "
                    "Weights and gradients of its parts do not belong in this group."
                )
        in_tp = [e for e in calls if list(e.group_ranks) == tp_group]
        if len(tp_group) > 1 and not (
            steps <= len(in_tp) and sum(e.nbytes for e in in_tp) <= 1.5 * steps * outputs
        ):
            return (
                f"rank {rank} makes {plural(len(in_tp), 'call')} in its tp group in {plural(steps, 'step')}, "
                "but it should sum the outputs once in each step."
            )
        sent = sum(e.nbytes for e in calls if list(e.group_ranks) == dp_group)
        most = steps * (gradients + 8)
        if len(dp_group) > 1 and sent > most:
            return (
                f"rank {rank} passes {sent:,} bytes to calls of its dp group, but {most:,} are enough: "
                "the gradients of its parts, once in each step."
            )
    return ""


INITIAL_CALLS = {"broadcast", "scatter"}


def describe_call(event: Event) -> str:
    return f"rank {event.rank} calls {event.call}{at(event)}"


def join_ranks(ranks: Sequence[int]) -> str:
    return ", ".join(map(str, ranks))


EXERCISE = Exercise(
    case,
    (
        Predicate(find_misplaced_data, "tp groups sum only outputs, dp groups only gradients"),
        WaitsForAll(),
    ),
    failed=(
        GROUP_AS_OP,
        CrashAdvice(
            "GroupsDiffer",
            "Every rank must create all groups, in the same order; init_device_mesh does that for you.",
        ),
        HangAdvice(
            "All members of a group must make the same calls in it: take the groups from the mesh, and "
            "create the same mesh on all ranks."
        ),
        CrashAdvice(
            "",
            "The ranks call one collective with tensors of different sizes. All ranks of a dp group should "
            "have the same part.",
            applies_if_killed=True,
        ),
    ),
    kind=Kind.MODULE,
    driver=run_training,
    reported=("list",),
    sizes=(1, 2, 4, 4, 6, 8),
    count=12,
)
