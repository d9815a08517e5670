"""16.3 Ring attention (20 min, ●●●●○)

- Begin with the keys and values of this rank. How many more blocks arrive, and which of their keys does each
  query see?
- After the first part, pass on k, v and their positions, attend to the arriving block, and merge. The
  positions of the arriving keys are `places`. A query at `positions[i]` sees a key at `places[j]` if
  positions[i] >= places[j].
- places = positions; out, lse = attend(q, k, v, positions[:, None] >= places). Then repeat world_size - 1
  times: k, v, places = PassOn.apply(k), PassOn.apply(v), PassOn.apply(places); out, lse = merge_parts(out,
  lse, *attend(q, k, v, positions[:, None] >= places)).
"""

import torch

from helpers.checks.author import *
from helpers.exercises.nb16_context_parallel.in_ranks import run_attention
from helpers.exercises.nb16_context_parallel.shared import (
    draw_sequence,
    find_excess_in_forward,
    ring_byte_limits,
)


def case(draw: Draw) -> Case:
    n, each = draw.ranks, draw.whole(1, 3)
    length = n * each
    whole = draw_sequence(draw, draw.whole(1, 2), length, may_share=True)
    order = draw.of("stretches", "stripes", "any order", "any order")
    places = torch.arange(length)
    if order == "stripes":
        places = places.view(each, n).T.flatten()
    elif order == "any order":
        places = torch.randperm(length, generator=draw.generator())
    own = list(places.split(each))
    given = [(*whole.part_at(p), p) for p in own]

    return Case(
        f"{length} tokens in {order}, {whole.describe()}",
        given,
        right=whole.make_judge(),
        facts=ring_byte_limits(n, whole.k.nbytes // n, 8 * each),
    )


EXERCISE = Exercise(
    case,
    (
        OnlyCalls(("send", "recv")),
        Predicate(find_excess_in_forward, "keys, values and positions go around once in forward"),
        Calls(
            "send",
            total_bytes="all",
            why="In backward, gradients are passed in the opposite direction.",
        ),
    ),
    failed=(
        CrashAdvice(
            "does not require grad",
            "The output has no graph. Is a tensor detached, or computed under no_grad?",
        ),
    ),
    kind=Kind.MODULE,
    driver=run_attention,
    sizes=(2, 3, 4, 5, 6),
)
