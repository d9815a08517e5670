"""16.5 Ulysses (12 min, ●●●○○, further)

- A head needs all tokens, but nothing from other heads. So during the attention, which dimension should be
  cut, and which should be whole?
- Swap.apply(x, 1, 2) cuts the heads (dimension 1) and joins the tokens (dimension 2). Its backward is the
  swap in the opposite direction.
- backward: return Swap.apply(grad, join, cut), None, None. Then q, k, v = (Swap.apply(x, 1, 2) for x in (q,
  k, v)); scaled_dot_product_attention(q, k, v, is_causal=True); Swap.apply(..., 2, 1).
"""

import torch

from helpers.checks.author import *
from helpers.exercises.nb16_context_parallel.in_ranks import run_attention
from helpers.exercises.nb16_context_parallel.shared import draw_sequence
from helpers.views.traffic_ledger import calls_by_phase

BACKWARD_ADVICE = (
    "The backward of a swap is the reverse swap: split the joined dimension, and join the split "
    "one."
)
FOUR_SWAPS_ADVICE = (
    "Forward needs one swap for each of q, k and v, and one for the output. Backward needs the same "
    "four."
)


def case(draw: Draw) -> Case:
    n, each = draw.ranks, draw.whole(1, 3)
    length = n * each
    whole = draw_sequence(draw, n * draw.whole(1, 2), length)
    own = list(torch.arange(length).split(each))
    return Case(
        f"{length} tokens, {whole.k.shape[1]} heads of {whole.k.shape[-1]}, {whole.k.dtype}",
        [whole.part_at(p) for p in own],
        right=whole.make_judge(),
        facts={"bytes": 4 * whole.k.nbytes // n},
    )


def find_excess_traffic(trace: Trace, case: Case) -> str:
    """Count the bytes of all calls of a phase, because q, k and v may be sent in one call."""
    for rank in range(case.world_size):
        for phase, calls in calls_by_phase(trace, rank).items():
            handed = sum(call.nbytes for call in calls)
            if handed > case.facts["bytes"]:
                most = f"{case.facts['bytes']:,}"
                return (
                    f"rank {rank} passes {handed:,} bytes to calls in {phase}, but {most} are enough. "
                    f"{FOUR_SWAPS_ADVICE}"
                )
    return ""


EXERCISE = Exercise(
    case,
    (
        OnlyCalls(("all_to_all",)),
        Calls(phase="forward", most=4, why=FOUR_SWAPS_ADVICE),
        Calls(phase="backward", most=4, why=FOUR_SWAPS_ADVICE),
        Predicate(find_excess_traffic, "four parts of a tensor are swapped each way"),
    ),
    failed=(
        HangAdvice("Every rank must make the same swaps in the same order."),
        CrashAdvice("invalid gradient|returned an invalid|shape", BACKWARD_ADVICE),
    ),
    kind=Kind.MODULE,
    driver=run_attention,
    sizes=(2, 3, 4),
)
