"""23.2 Data and tensor parallel (20 min, ●●●○○)

- Which ranks must see the same samples? Which ranks hold the same part of a weight? Each of these questions
  is answered by one of the two groups.
- Broadcast both weights from rank 0 to all. Cut them by a Block on mesh['tp']. In each step: the batch's
  share of your dp coordinate, forward, backward, all_reduce of each gradient with AVG in the dp group,
  optimizer step, clones of the two parts into the list.
- mesh = init_device_mesh('cpu', (world_size // tp, tp), mesh_dim_names=('dp', 'tp')); dp = mesh['dp']; block
  = Block(up, down, mesh['tp']); own = slice of step * batch_size + dp.get_local_rank() * share, share long;
  dist.all_reduce(p.grad, op=dist.ReduceOp.AVG, group=dp.get_group()).
"""

from collections.abc import Sequence
from typing import Any

import torch
from torch.nn.functional import cross_entropy

from helpers.checks.author import *
from helpers.exercises.nb23_capstone.in_ranks import train_on_a_mesh
from helpers.exercises.nb23_capstone.shared import line_of
from helpers.trace.events import Event, Trace
from helpers.trace.mismatch import at
from helpers.views.plain import plural

Pair = tuple[torch.Tensor, torch.Tensor]
"""Of the weight of `up` and of that of `down`: the whole, or what one rank holds of them."""
PARTS = (
    "This rank begins with rank 0's **part** of the weights: broadcast the whole weights before you cut "
    "them, not the parts."
)
MEAN = (
    "Gradients are the mean over the dp group: a loss is a mean over this rank's share of the batch. In the "
    "tp group nothing is divided."
)
ALONE = "Each replica learns from its own samples only: average the gradients over the dp group."
CLEARED = (
    "The first step is right, later ones are not: the gradients are not cleared between steps."
)
TP = {1: (1,), 2: (1, 2), 4: (2, 2, 2, 1, 4), 6: (2, 3), 8: (2, 4)}


def case(draw: Draw) -> Case:
    n = draw.ranks
    tp = draw.of(*TP[n])
    dp, share, steps, lr = n // tp, draw.whole(1, 4), draw.whole(2, 4), draw.of(0.5, 0.25, 0.1)
    hidden = tp * draw.whole(1, 3)
    pixels, classes, size = draw.whole(2, 5), draw.whole(2, 4), dp * share
    dtype, generator = draw.dtype(torch.float64, torch.float32), draw.generator()

    def normal(*shape: int) -> torch.Tensor:
        return torch.randn(shape, generator=generator, dtype=dtype)

    starts = [(normal(hidden, pixels), normal(classes, hidden)) for _ in range(n)]
    count = steps * size + draw.of(0, 3)
    x, y = normal(count, pixels), torch.randint(classes, (count,), generator=generator)
    world = World(tp, x, y, size, steps, lr)
    one = world.alone(starts[0])
    whole = [cut(pair, tp) for pair in one]

    def by_step(rows: Sequence[Sequence[Pair]]) -> list[dict[str, Any]]:
        """Name the parts that each rank gives; rows[step][rank]."""
        return [
            {
                f"{name} after step {step}": pair[r][i]
                for step, pair in enumerate(rows, 1)
                for i, name in enumerate(("up", "down"))
            }
            for r in range(n)
        ]

    begin = [cut(starts[0], tp)[r % tp] for r in range(n)]
    rows = [[parts[r % tp] for r in range(n)] for parts in whole]
    right = ByName(
        [{"list": "", **own} for own in by_step(rows)], scale=max(1.0, *(largest(*p) for p in one))
    )

    def as_if(words: str, **how: Any) -> Mistake:
        held = how.pop("begin", begin)
        return right.mistake(words, lambda: by_step(world.ranks(held, **how)))

    def gives(words: str, rows: Sequence[Sequence[Pair]]) -> Mistake:
        return right.mistake(words, by_step(rows))

    _everybody, in_dp = range(n), [line_of((dp, tp), 0, r)[1] for r in range(n)]
    in_tp = [line_of((dp, tp), 1, r)[1] for r in range(n)]
    return Case(
        f"dp {dp}, tp {tp}, {hidden} hidden, {plural(steps, 'step')} of {plural(size, 'sample')}, {dtype}",
        [(tp, *start, x, y, size, steps, lr) for start in starts],
        right=right,
        facts={
            "groups": (in_dp, in_tp),
            "outputs": share * classes * x.element_size(),
            "gradients": [sum(part.nbytes for part in begin[r]) for r in range(n)],
            "weights": sum(part.nbytes for part in starts[0]),
            "steps": steps,
        },
    )


def cut(whole: Pair, tp: int) -> list[Pair]:
    """Cut both weights for each tp coordinate."""
    pairs = zip(whole[0].chunk(tp), whole[1].chunk(tp, dim=1), strict=True)
    return [(rows.clone(), columns.clone()) for rows, columns in pairs]


class World:
    """What one process, or ranks that do one thing otherwise, train on this data."""

    def __init__(
        self, tp: int, x: torch.Tensor, y: torch.Tensor, size: int, steps: int, lr: float
    ) -> None:
        self.tp, self.x, self.y, self.size, self.steps, self.lr = tp, x, y, size, steps, lr

    def alone(self, start: Pair) -> list[Pair]:
        """Train the whole layers; give both weights after every step."""
        one = World(1, self.x, self.y, self.size, self.steps, self.lr)
        return [row[0] for row in one.ranks([start])]

    def ranks(
        self,
        begin: Sequence[Pair],
        groups: Sequence[Sequence[int]] = (),
        shares: Sequence[int] = (),
        of: int = 0,
        factor: float = 1.0,
        clear: bool = True,
        first: bool = False,
    ) -> list[list[Pair]]:
        """Train as all ranks would; give what each holds after every step.

        groups[r]: over which ranks' gradients rank r takes the mean, which is taken times `factor`.
        shares[r]: which of the `of` shares of a batch it learns from; -of: those of a floor division. first:
        every step has the first batch.
        """
        n, tp, after = len(begin), self.tp, []
        parts = [[p.clone().requires_grad_() for p in pair] for pair in begin]
        total: list[list[Any]] = [[0.0, 0.0] for _ in begin]
        groups = groups or [line_of((n // tp, tp), 0, r)[1] for r in range(n)]
        shares = shares or [r // tp for r in range(n)]
        for step in range(self.steps):
            now = slice(0 if first else step * self.size, None)
            share = self.size // -of if of < 0 else -(-self.size // (of or n // tp))
            xs, ys = (
                [t[now][: self.size][k * share :][:share] for k in range(n)]
                for t in (self.x, self.y)
            )
            outs = [
                torch.relu(xs[own] @ up.T) @ down.T
                for own, (up, down) in zip(shares, parts, strict=True)
            ]
            grads = []
            for r, own in enumerate(shares):
                others = [outs[k].detach() for k in line_of((n // tp, tp), 1, r)[1] if k != r]
                loss = cross_entropy(sum(others, outs[r]), ys[own])
                grads.append(torch.autograd.grad(loss, parts[r], retain_graph=True))
            for r, group in enumerate(groups):
                for i in range(2):
                    mean = sum(grads[k][i] for k in group) / len(group) * factor
                    total[r][i] = mean if clear else total[r][i] + mean
            with torch.no_grad():
                for own_parts, own_grads in zip(parts, total, strict=True):
                    for part, grad in zip(own_parts, own_grads, strict=True):
                        part -= self.lr * grad
            after.append([(a.detach().clone(), b.detach().clone()) for a, b in parts])
        return after


def each_in_its_dimension(trace: Trace, case: Case) -> str:
    """Say which call carries what does not belong into its group."""
    facts, steps = case.facts, case.facts["steps"]
    for rank in range(case.world_size):
        dp_group, tp_group = (lines[rank] for lines in facts["groups"])
        calls = [e for e in trace.of(rank) if e.op not in {"span", "barrier"}]
        sent = sum(e.nbytes for e in calls if e.op in BEGINS)
        if sent > 2 * facts["weights"]:
            return (
                f"rank {rank} hands {sent:,} bytes to broadcasts; the weights have {facts['weights']:,}, and "
                "travel once, before the first step."
            )
        calls = [e for e in calls if e.op not in BEGINS and len(e.group_ranks) > 1]
        outputs, gradients = facts["outputs"], facts["gradients"][rank]
        for e in calls:
            group = list(e.group_ranks)
            if group not in (dp_group, tp_group):
                return (
                    f"{call_of(e)} in a group of ranks {listed(group)}; its dp group is "
                    f"{listed(dp_group)}, its tp group {listed(tp_group)}."
                )
            if group == tp_group and e.nbytes > outputs:
                return (
                    f"{call_of(e)} with {e.nbytes:,} bytes in the group of ranks {listed(tp_group)}. That is "
                    f"its tp group; the output for its samples has {outputs:,} bytes, and weights and "
                    "gradients of its parts do not belong there."
                )
        in_tp = [e for e in calls if list(e.group_ranks) == tp_group]
        if len(tp_group) > 1 and not (
            steps <= len(in_tp) and sum(e.nbytes for e in in_tp) <= 1.5 * steps * outputs
        ):
            return (
                f"rank {rank} makes {plural(len(in_tp), 'call')} in its tp group in {plural(steps, 'step')}; "
                "one sum of outputs a step is right."
            )
        sent = sum(e.nbytes for e in calls if list(e.group_ranks) == dp_group)
        most = steps * (gradients + 8)
        if len(dp_group) > 1 and sent > most:
            return (
                f"rank {rank} hands in {sent:,} bytes in its dp group; {most:,} are enough: the "
                "gradients of its parts, once a step."
            )
    return ""


BEGINS = {"broadcast", "scatter"}


def call_of(event: Event) -> str:
    return f"rank {event.rank} calls {event.call}{at(event)}"


def listed(ranks: Sequence[int]) -> str:
    return ", ".join(map(str, ranks))


EXERCISE = Exercise(
    case,
    (
        Holds(each_in_its_dimension, "each group carries only what belongs into it"),
        AwaitedByHand(),
    ),
    failed=(
        Failed(
            "GroupsDiffer",
            "All ranks make all groups, in the same order. Or let init_device_mesh do it.",
        ),
        Stuck(
            "All members of a group must make the same calls in it. Does each rank take its groups from "
            "the mesh, and is the mesh made alike on all ranks?"
        ),
        Failed(
            "",
            "Tensors of different sizes met in one call: are they parts of the same weight, in the dp group?",
            died=True,
        ),
    ),
    kind=Kind.MODULE,
    programme=train_on_a_mesh,
    reported=("list",),
    sizes=(1, 2, 4, 4, 6, 8),
    count=12,
    own_network=True,
)
