"""9.6 Compress the gradients (15 min, ●●●○○, further)

- `bucket.buffer()` is the flat tensor of the bucket's gradients. Which three things happen to it, and which
  of them can happen only after the transfer?
- half = (bucket.buffer() / world_size).to(torch.float16); start its all_reduce with async_op=True; the
  Work's `get_future()` has a method `then`.
- return work.get_future().then(lambda done: done.value()[0].to(bucket.buffer().dtype))
"""

import torch

from helpers.checks.author import *
from helpers.exercises.nb09_ddp_from_the_inside.in_ranks import run_compression
from helpers.exercises.nb09_ddp_from_the_inside.shared import DDP_COLLECTIVES

TOLERANCE = {torch.float32: 4e2, torch.float64: 4e6}
"""Allowed error after values have passed through float16, as a multiple of the dtype's usual tolerance."""
WAIT_ADVICE = (
    "Return `work.get_future().then(...)` without waiting, because DDP waits at the end of "
    "backward."
)


def case(draw: Draw) -> Case:
    n, dtype = draw.ranks, draw.dtype(torch.float32, torch.float64)
    large = draw.of(True, False) and n > 1
    shapes = [draw.shape((0, 1, 2), 1) for _ in range(draw.whole(2, 4))]
    grads = [draw.tensors(shape, dtype) for shape in shapes]
    grads = [[g / max(largest(*each), 1e-300) for g in each] for each in grads]
    # the other cases test the loss of precision in small numbers
    for g in grads[0] if large else ():
        g.fill_(draw.whole(45_000, 60_000) if n == 2 else 50_000)
    weights = [draw.tensor(shape, torch.float32, 1.0) for shape in shapes]

    def name_both_steps(values: list[torch.Tensor]) -> dict[str, torch.Tensor]:
        return {f"step {k}: p{i}": v for k in (1, 2) for i, v in enumerate(values)}

    sizes = [TOLERANCE[dtype] * largest(*each) for each in grads]
    size = {f"step {k}: p{i}": sizes[i] for k in (1, 2) for i in range(len(sizes))}
    mean = name_both_steps([torch.stack(each).sum(0) / n for each in grads])
    judge = NamedParts(
        [{"waits": "", **mean}] * n, size, lambda name, got: WAIT_ADVICE if name == "waits" else ""
    )
    return Case(
        f"{plural(len(shapes), 'gradient')} of {dtype}" + ", sums beyond 65,504" * large,
        [(weights, dtype == torch.float64, [each[rank] for each in grads]) for rank in range(n)],
        right=judge,
        facts={"bytes": 2 * 2 * sum(w.numel() for w in weights), "calls": 2 * len(shapes)},
    )


def find_wrong_dtype(trace: Trace, case: Case) -> str:
    """Describe an all_reduce that does not send float16."""
    for event in trace.calls:
        if event.op == "all_reduce" and event.dtype != "float16":
            return f"rank {event.rank} passes {event.dtype} to all_reduce{at(event)}; expected: float16."
    return ""


def find_blocking_call(trace: Trace, case: Case) -> str:
    """Describe a blocking all_reduce in a hook."""
    for event in trace.calls:
        if event.op == "all_reduce" and not event.asynchronous:
            return (
                f"rank {event.rank} calls {event.call}{at(event)}, which blocks backward until all ranks "
                "have called it. Pass async_op=True."
            )
    return ""


EXERCISE = Exercise(
    case,
    (
        OnlyCalls(DDP_COLLECTIVES),
        Predicate(find_wrong_dtype, "gradients are sent as float16"),
        Predicate(find_blocking_call, "no call in the hook waits"),
        Calls("all_reduce", text="one all_reduce for each bucket"),
    ),
    failed=(HangAdvice("The hook must call all_reduce for its bucket on every rank."),),
    kind=Kind.MODULE,
    driver=run_compression,
    reported=("waits",),
    sizes=(1, 2, 3, 4),
)
