"""14.4 With torch.distributed.pipelining (8 min, ●●○○○)

- Begin with the example above. Which class implements 1F1B, and how does the last stage get its losses?
- stage = PipelineStage(layers, rank, world_size, torch.device('cpu')); schedule = Schedule1F1B(stage,
  microbatches, loss_fn=loss_fn). Then call step() with x on the first stage, with target and losses on the
  last stage, and without arguments on the others.
- losses = []; if rank == 0: schedule.step(x); elif rank == world_size - 1: schedule.step(target=y,
  losses=losses); else: schedule.step(). Return losses on the last stage, and None elsewhere.
"""

import torch

from helpers.checks.author import *
from helpers.exercises.nb14_pipeline_parallel.in_ranks import run_torch_schedule
from helpers.exercises.nb14_pipeline_parallel.shared import Pipeline

SCHEDULE_CLASS = "Schedule1F1B"


def case(draw: Draw) -> Case:
    n, m = draw.ranks, draw.ranks + draw.of(0, 1, 3)
    pipeline = Pipeline.draw(draw, m, draw.dtype(torch.float32, torch.float64))
    x, y = torch.cat(list(pipeline.inputs)), torch.cat(list(pipeline.targets))
    found, numbers = pipeline.expected_results()
    losses = [torch.tensor(v, dtype=x.dtype) for v in numbers]
    grads = [{k: v for k, v in each.items() if k.startswith("gradient of")} for each in found]
    right = [
        {"steps": SCHEDULE_CLASS, **grads[r], "losses": losses if r == n - 1 else None}
        for r in range(n)
    ]
    return Case(
        f"{len(x)} samples in {m} microbatches, {x.dtype}",
        [
            (
                pipeline.kinds,
                pipeline.states[r],
                x if r == 0 else None,
                y if r == n - 1 else None,
                m,
            )
            for r in range(n)
        ],
        right=NamedParts(right),
        seconds=20.0,
    )


def find_collective(trace: Trace, case: Case) -> str:
    """Describe the answer's first collective; torch's schedule may also call collectives (as in 2.15)."""
    for event in trace.calls:
        by_torch = event.by.startswith("distributed/pipelining/")
        if event.op not in ("send", "recv") and not by_torch:
            return f"rank {event.rank} calls {event.call}{at(event)}, but step() makes all necessary calls."
    return ""


EXERCISE = Exercise(
    case,
    (
        Predicate(
            find_collective,
            "no collective calls outside of step()",
            forbids=True,
            on_each_call=True,
        ),
    ),
    failed=(
        HangAdvice(
            "Every rank calls step(): the first with x, the last with target=y, and the others without "
            "arguments."
        ),
    ),
    kind=Kind.MODULE,
    driver=run_torch_schedule,
    reported=("steps",),
    sizes=(2, 3, 4),
    count=12,
)
