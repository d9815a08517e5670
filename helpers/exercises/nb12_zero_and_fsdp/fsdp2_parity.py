"""12.4 The same with fully_shard (10 min, ●●○○○)

- You need three steps: make the weights equal, shard the model, and create the optimizer. Sharding replaces
  the model's parameters. So which of the other two steps should come before sharding, and which after it?
- Broadcast every `p.detach()` from rank 0. Then call fully_shard(layer, mesh=mesh) for each layer with
  parameters, and fully_shard(model, mesh=mesh). Then create the optimizer, train, and call `p.full_tensor()`
  for each parameter.
- mesh = init_device_mesh('cpu', (world_size,)); for layer in model: if list(layer.parameters()):
  fully_shard(layer, mesh=mesh). At the end: return {name: p.full_tensor() for name, p in
  model.named_parameters()}.
"""

import torch

from helpers.checks.author import *
from helpers.exercises.nb12_zero_and_fsdp.in_ranks.fsdp2 import (
    Training,
    run_fsdp2,
)
from helpers.exercises.nb12_zero_and_fsdp.shared import draw_state, largest_shard


def case(draw: Draw) -> Case:
    n, steps = draw.ranks, draw.whole(2, 3)
    kinds = draw.of(
        "Linear Tanh Linear",
        "Flatten Linear LayerNorm Linear",
        "Linear ReLU Linear LayerNorm Tanh Linear",
    )
    widths, each, lr = (
        [draw.whole(3, 8) for _ in range(kinds.count("Linear"))],
        draw.whole(2, 4),
        0.05,
    )
    widths.append(draw.of(2, 5))  # sometimes fewer rows than ranks
    starts = [draw_state(draw, kinds.split(), widths) for _ in range(n)]
    x = torch.randn(n * each, widths[0], generator=draw.generator(), dtype=torch.float64)
    y = torch.randint(0, widths[-1], (n * each,), generator=draw.generator())

    weights = starts[0]
    rows = {k: largest_shard(len(w), n) * w[0].numel() * 8 for k, w in weights.items()}
    layers = {name.split(".")[0] for name in weights}

    data = [(x[r * each :][:each], y[r * each :][:each]) for r in range(n)]
    most = sum(rows.values())
    given = [(Training(kinds.split(), starts[r], *data[r], steps, lr, most),) for r in range(n)]

    return Case(
        f"{kinds.replace(' ', ', ')}, {plural(steps, 'step')} of Adam",
        given,
        right=Reference(),
        facts={
            "gathered": max(
                sum(b for k, b in rows.items() if k.split(".")[0] == i) for i in layers
            ),
            "enough": 2 * len(layers) * steps,
            "layers": len(layers),
        },
        seconds=20.0,
    )


def find_large_gather(trace: Trace, case: Case) -> str:
    """Describe an all_gather that sends more than this rank's rows of the largest layer."""
    for event in trace:
        if event.op == "all_gather" and event.nbytes > (most := case.facts["gathered"]):
            return (
                f"rank {event.rank} passes {event.nbytes:,} bytes to one all_gather, but its share "
                f"of the largest layer is {most:,}. Call fully_shard on each layer first and on the whole "
                "model last, so that one layer at a time is gathered."
            )
    return ""


def find_missing_gather(trace: Trace, case: Case) -> str:
    """Return the rank that runs backward with weights kept whole since forward."""
    for rank in range(case.world_size):
        made = [event.op for event in trace.of(rank)]
        if "reduce_scatter" not in made:
            continue
        while made.pop() != "reduce_scatter":  # calls after the last step do not count
            pass
        enough = case.facts["enough"]
        if (gathers := made.count("all_gather")) < enough:
            return (
                f"rank {rank} calls all_gather {gathers} times while training; expected: {enough}, once in "
                f"forward and once in backward of each step for each of {case.facts['layers']} layers. If "
                "weights stay whole in between (`reshard_after_forward=False`, or no root), the whole model "
                "is in memory at the end of forward."
            )
    return ""


EXERCISE = Exercise(
    case,
    (
        OnlyCalls(("broadcast", "all_gather", "reduce_scatter")),
        Predicate(find_large_gather, "one layer at a time is gathered"),
        Predicate(find_missing_gather, "each layer is gathered in forward and again in backward"),
    ),
    failed=(
        CrashAdvice(
            "DTensor|sharding strategy",
            "You can't mix plain tensors with DTensors. Broadcast before fully_shard, and call the module "
            "itself.",
        ),
    ),
    kind=Kind.MODULE,
    driver=run_fsdp2,
    reported=("kind", "names", "DTensor", "sharded", "root", "share"),
    sizes=(2, 3, 4),
    count=12,
)
