"""9.3 Buckets (45 min, ●●●●○, further)

- Keep track of three things: the list of buckets, which gradients are ready, and how many buckets have been
  sent. When a hook runs, which bucket may be sent next?
- In the hook, add the parameter to a set. Then, as long as the next unsent bucket is complete,
  concatenate its flattened gradients and start the all_reduce. In finish(), use zeros for missing
  gradients, start the remaining buckets, wait for all of them, and split the means.
- torch.cat([p.grad.flatten() for p in bucket]) makes the flat tensor; flat.split([p.numel() for p in bucket])
  splits it; `p.grad = part.view_as(p)`. At the end of finish(), empty the set and set the count back to 0.
"""

from collections.abc import Sequence

from helpers.checks.author import *
from helpers.checks.rules_spans import IssuedInside
from helpers.exercises.nb09_ddp_from_the_inside.in_ranks import (
    Route,
    WrappedTraining,
    train_wrapped,
)
from helpers.exercises.nb09_ddp_from_the_inside.shared import (
    FAILURE_ADVICE,
    LEFT_RIGHT,
    RIGHT_LEFT,
    WRAPPER_RULES,
    ZEROS_ADVICE,
    draw_wrapped_case,
)

ORDER_ADVICE = (
    "The ranks passed different buckets to one call, because each rank's gradients become ready in a "
    "different order, or not at all. Start the buckets in a fixed order: bucket 1 should wait until bucket "
    "0 has started, even if bucket 1 is already complete."
)


def case(draw: Draw) -> Case:
    n, steps = draw.ranks, draw.of(2, 3)
    kind = draw.of("", "", "different order", "different layers", "different layers")
    some: list[Route] = [
        LEFT_RIGHT if kind == "different order" and r % 2 else RIGHT_LEFT for r in range(n)
    ]
    if kind == "different layers":
        some = [("left",), ("right",), LEFT_RIGHT, ("right",)][:n] if n > 1 else [("left",)]
    # The ranks' routes change from step to step.
    routes = [[some[(r + step) % n] for step in range(steps)] for r in range(n)]
    limit = draw.of(8, 64, 100, 128, 160, 256, 1_000_000)
    label = f", buckets of {limit} bytes" + f", {kind} on some ranks" * bool(kind and n > 1)
    return draw_wrapped_case(
        draw, label, routes, kind == "different layers" and draw.of(True, False), limit
    )


def bucket_bytes(sizes: Sequence[int], limit: int) -> list[int]:
    """Return the bytes of each bucket, filled in this order. Only a bucket of one gradient may exceed it."""
    found: list[int] = []
    for size in sizes:
        if found and found[-1] + size <= limit:
            found[-1] += size
        else:
            found.append(size)
    return found


def find_wrong_buckets(trace: Trace, case: Case) -> str:
    """Return the difference between a rank's all_reduces and this model's buckets."""
    steps, dtype = case.facts["steps"], case.facts["dtype"]
    for rank in range(case.world_size):
        made = [event for event in trace.of(rank) if event.op == "all_reduce"]
        limit = case.given[rank][-1]
        wanted = bucket_bytes(case.facts["sizes"], limit)
        second_wanted = bucket_bytes(case.facts["second sizes"], limit)
        if case.facts["second"] == "trained first":
            wanted = second_wanted + wanted
        else:
            wanted += second_wanted
        if not made:
            return f"rank {rank} makes no all_reduce; a step has {plural(len(wanted), 'bucket')}."
        for event in made:
            if event.dtype != dtype:
                return (
                    f"rank {rank} passes {event.dtype} to all_reduce{at(event)}; expected: {dtype}."
                )
        sizes = [event.nbytes for event in made]
        if sizes != wanted * steps and sizes[: len(wanted)] == wanted:
            later, right = len(sizes) - len(wanted), len(wanted) * (steps - 1)
            advice = " The state of the first step is still in use: reset it in finish()."
            return (
                f"rank {rank} reduces the {plural(len(wanted), 'bucket')} of the first step correctly, but "
                f"makes {plural(later, 'all_reduce')} in later steps, which have {plural(right, 'bucket')}."
                f"{advice if not later and _sends_unready_buckets(case.given[rank][0]) else ''}"
            )
        if sizes != wanted * steps:
            first = ", ".join(str(event.nbytes) for event in made[: max(1, len(made) // steps)])
            return (
                f"rank {rank} makes {plural(len(made), 'all_reduce')} in {steps} steps, starting with "
                f"{first} bytes; the buckets of a step have {', '.join(map(str, wanted))} bytes. Go "
                "through the trained parameters from the last to the first, and start a new bucket when "
                "the next gradient would exceed the limit (filling a bucket exactly is allowed)."
            )
    return ""


def _sends_unready_buckets(training: WrappedTraining) -> bool:
    """Return whether a rank that has sent all buckets in step 1 would also send them all in later steps.

    A rank that forgets incomplete buckets sends all buckets only in a step that uses all layers.
    """
    uses_all = [set(route) == {*LEFT_RIGHT} for route in training.routes]
    return not uses_all[0] or all(uses_all)


def ranks_use_different_layers(case: Case, run: Run) -> bool:
    """Return whether ranks use different layers in this case."""
    return bool(case.facts["sets"] > 1)


def ranks_use_different_orders(case: Case, run: Run) -> bool:
    """Return whether ranks use their layers in different orders in this case."""
    return bool(case.facts["orders"] > 1)


def has_different_gradients(case: Case, run: Run) -> bool:
    """Return whether gradients become ready in different orders, or never on some ranks."""
    return ranks_use_different_layers(case, run) or ranks_use_different_orders(case, run)


EXERCISE = Exercise(
    case,
    (
        *WRAPPER_RULES,
        Predicate(find_wrong_buckets, "one all_reduce for each bucket"),
        IssuedInside("backward", applies=lambda case: case.facts["all used"]),
        WaitsForAll(),
    ),
    failed=(
        *FAILURE_ADVICE[:-2],
        HangAdvice(ZEROS_ADVICE, when=ranks_use_different_layers),
        HangAdvice(ORDER_ADVICE, when=ranks_use_different_orders),
        CrashAdvice("", ORDER_ADVICE, applies_if_killed=True, when=has_different_gradients),
        *FAILURE_ADVICE[-2:],
    ),
    kind=Kind.MODULE,
    driver=train_wrapped,
    reported=("in flight",),
    sizes=(1, 2, 3, 4),
)
