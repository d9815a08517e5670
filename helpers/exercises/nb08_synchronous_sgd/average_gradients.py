"""8.1 Average the gradients (12 min, ●●○○○)

- Loop over `model.parameters()`: it gives a shared weight once. What does a rank hand in for a parameter
  that its backward never reached?
- Skip what has `requires_grad=False`. For the rest: where `p.grad is None`, set it to `torch.zeros_like(p)`;
  then add up over the ranks and divide by `dist.get_world_size()`.
- for p in model.parameters(): if not p.requires_grad: continue; if p.grad is None: p.grad =
  torch.zeros_like(p); dist.all_reduce(p.grad); p.grad /= dist.get_world_size()
"""

import torch

from helpers.checks.author import *
from helpers.exercises.nb08_synchronous_sgd.in_ranks import with_given_gradients
from helpers.exercises.nb08_synchronous_sgd.shared import STEPS, Own, each_total
from helpers.exercises.shared.gradients import GUARDED, Gradients
from helpers.views.plain import plural

NAMES = ("table", "first", "second", "shift", "scale")
ADVICE = {"weights": STEPS}


def case(draw: Draw) -> Case:
    n, dtype = draw.ranks, draw.dtype(torch.float64, torch.float32, torch.float64, torch.bfloat16)
    names = NAMES[: draw.whole(2, 5)]
    who, tied = (
        draw.of("all ranks have all", "some have none", "some", "some"),
        draw.of(True, False),
    )
    frozen = {draw.of(*names)} if draw.of(True, False) else set()
    own: list[dict[str, torch.Tensor | None]] = [{} for _ in range(n)]
    values, idle = {}, draw.rank() if who == "some have none" and n > 1 else None
    for name in names:
        shape = draw.shape((0, 1, 2, 2, 4) if who == "all ranks have all" else (0, 1, 2), 1)
        shape = (7, 4) if tied and name == names[0] else shape
        values[name], grads = draw.tensor(shape, dtype), draw.tensors(shape, dtype)
        has = [who == "all ranks have all" or draw.of(True, True, False) for _ in range(n)]
        has = (
            [draw.of(True, False)] * n
            if name in frozen
            else [h and r != idle for r, h in enumerate(has)]
        )
        for rank in range(n):
            own[rank][name] = grads[rank] if has[rank] else None
    trained = [name for name in names if name not in frozen]
    if all(one[name] is None for one in own for name in trained):
        own[0 if idle else n - 1][trained[0]] = draw.tensor(values[trained[0]].shape, dtype, 1.0)
    mine: Own = [{name: one[name] for name in trained} for one in own]
    mean, sums = each_total(mine, [1 / n] * n), each_total(mine, [1.0] * n)
    unused = frozenset(name for name in trained if mean[name] is None)
    used = [name for name in trained if name not in unused]
    right = [
        {
            "weights": "",
            **{name: mean[name] for name in used},
            **{name: torch.zeros_like(values[name]) for name in unused},
            **{name: one[name] for name in frozen},
        }
        for one in own
    ]
    scale = {name: largest(*(one[name] for one in own)) for name in names}
    parts = Gradients(
        right, scale, lambda name, got: FROZEN if name in frozen else ADVICE.get(name, ""), unused
    )

    def divided(by: object) -> list[dict[str, torch.Tensor]]:
        count = {name: sum(one[name] is not None for one in mine) for name in used}
        return [{name: sums[name] / (by or count[name]) for name in used}] * n

    def alike() -> bool:
        shapes = [[one[name].shape for name in trained if one[name] is not None] for one in mine]  # type: ignore[union-attr]
        return all(each == shapes[0] for each in shapes)

    return Case(
        f"{plural(len(names), 'parameter')} of {dtype}, {who}" + ", one frozen" * bool(frozen),
        [
            ([(name, values[name], one[name], name in trained) for name in names], tied)
            for one in own
        ],
        right=parts,
        facts={
            "bytes": sum(values[name].nbytes + 8 for name in trained),
            "calls": 2 * len(trained),
            "have": [sum(g is not None for g in one.values()) for one in mine],
            "missing": any(g is None for one in mine for g in one.values()),
        },
    )


FROZEN = (
    "It is frozen: leave a parameter with requires_grad=False alone, there is nothing to average."
)


EXERCISE = Exercise(
    case,
    (
        OnlyCalls(("all_reduce",)),
        Travels(
            "all_reduce",
            "each trained parameter's gradient travels once",
            why="A weight with two names travels once: `model.parameters()` gives it once. A frozen one does "
            "not travel.",
        ),
        Awaited(),
    ),
    failed=(GUARDED,),
    kind=Kind.MODULE,
    programme=with_given_gradients,
    reported=("weights",),
)
