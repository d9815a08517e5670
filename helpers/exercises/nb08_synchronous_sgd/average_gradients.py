"""8.1 Average the gradients (12 min, ●●○○○)

- Loop over `model.parameters()`, which yields a shared weight only once. If a rank's backward never reached
  a parameter, what should this rank contribute for it?
- Skip parameters with `requires_grad=False`. For the others, if `p.grad is None`, set it to
  `torch.zeros_like(p)`. Then sum the gradient over the ranks and divide it by `dist.get_world_size()`.
- for p in model.parameters(): if not p.requires_grad: continue; if p.grad is None: p.grad =
  torch.zeros_like(p); dist.all_reduce(p.grad); p.grad /= dist.get_world_size()
"""

import torch

from helpers.checks.author import *
from helpers.exercises.nb08_synchronous_sgd.in_ranks import run_with_gradients
from helpers.exercises.nb08_synchronous_sgd.shared import STEPS_ADVICE
from helpers.exercises.shared.gradients import NO_GRAD_ADVICE

PARAMETER_NAMES = ("table", "first", "second", "shift", "scale")
FROZEN_ADVICE = (
    "Skip parameters with requires_grad=False: they aren't trained, so their `p.grad` must not "
    "change."
)


def case(draw: Draw) -> Case:
    n, dtype = draw.ranks, draw.dtype(torch.float64, torch.float32, torch.float64, torch.bfloat16)
    names, tied = PARAMETER_NAMES[: draw.whole(2, 5)], draw.of(True, False)
    who = draw.of("all ranks have all", "some have none", "some", "some")
    frozen = {draw.of(*names)} if draw.of(True, False) else set()
    trained = [name for name in names if name not in frozen]
    all_have = who == "all ranks have all"
    idle = draw.rank() if who == "some have none" and n > 1 else None
    own: list[dict[str, torch.Tensor | None]] = [{} for _ in range(n)]
    values = {}
    for name in names:
        shape = draw.shape((0, 1, 2, 2, 4) if all_have else (0, 1, 2), 1)
        shape = (7, 4) if tied and name == names[0] else shape
        values[name], grads = draw.tensor(shape, dtype), draw.tensors(shape, dtype)
        # the gradient of a frozen parameter, from before it was frozen
        stale = draw.of(True, False)
        for rank in range(n):
            has = all_have or (draw.of(True, True, False) and rank != idle)
            own[rank][name] = grads[rank] if (stale if name in frozen else has) else None
    if all(one[name] is None for one in own for name in trained):
        own[0 if idle else n - 1][trained[0]] = draw.tensor(values[trained[0]].shape, dtype, 1.0)
    unused = frozenset(name for name in trained if all(one[name] is None for one in own))
    scale = {name: largest(*(one[name] for one in own)) for name in names}
    advice = {"weights": STEPS_ADVICE, **dict.fromkeys(frozen, FROZEN_ADVICE)}
    return Case(
        f"{plural(len(names), 'parameter')} of {dtype}, {who}" + ", one frozen" * bool(frozen),
        [
            ([(name, values[name], one[name], name in trained) for name in names], tied)
            for one in own
        ],
        right=Reference(scale, advice, unused=unused),
        facts={
            "bytes": sum(values[name].nbytes + 8 for name in trained),
            "calls": 2 * len(trained),
        },
    )


EXERCISE = Exercise(
    case,
    (
        OnlyCalls(("all_reduce",)),
        Calls(
            "all_reduce",
            text="each trained parameter's gradient is sent once",
            why="Send a weight with two names only once: `model.parameters()` returns it once. Don't send "
            "frozen parameters.",
        ),
        WaitsForAll(),
    ),
    failed=(NO_GRAD_ADVICE,),
    kind=Kind.MODULE,
    driver=run_with_gradients,
    reported=("weights",),
)
