"""16.3 Ring attention (20 min, ●●●●○)

- Begin with your own keys and values. How many more blocks arrive, and which of their keys does each query
  see?
- After the first part: pass k, v and their positions on, attend to what came, merge. A query at
  `positions[i]` sees a key at `places[j]`, which has come with it, where positions[i] >= places[j].
- places = positions; out, lse = attend(q, k, v, positions[:, None] >= places). Then world_size - 1 times: k,
  v, places = PassOn.apply(k), PassOn.apply(v), PassOn.apply(places); out, lse = merge_parts(out, lse,
  *attend(q, k, v, positions[:, None] >= places)).
"""

import torch

from helpers.checks.author import *
from helpers.exercises.nb16_context_parallel.in_ranks import run_attention
from helpers.exercises.nb16_context_parallel.shared import draw_sequence
from helpers.views.traffic_ledger import calls_by_phase


def case(draw: Draw) -> Case:
    n, each = draw.ranks, draw.whole(1, 3)
    length = n * each
    whole = draw_sequence(draw, draw.whole(1, 2), length)
    order = draw.of("stretches", "stripes", "any order", "any order")
    places = torch.arange(length)
    if order == "stripes":
        places = places.view(each, n).T.flatten()
    elif order == "any order":
        places = torch.randperm(length, generator=draw.generator())
    own = list(places.split(each))
    block = whole.k.nbytes // n
    numbers = 8 * each
    given = [(*whole.at(p), p) for p in own]

    return Case(
        f"{length} tokens in {order}, {tuple(whole.k.shape[:2])} x {whole.k.shape[-1]} of {whole.k.dtype}",
        given,
        right=whole.right(),
        facts={"forward": (n - 1) * (2 * block + numbers), "all": _most(n, block, numbers)},
    )


def _most(n: int, block: int, numbers: int) -> int:
    """Return the bytes of an answer that passes k and v around again in backward, with their gradients."""
    return (n - 1) * (2 * block + numbers) + n * (4 * block + numbers)


def once_around(trace: Trace, case: Case) -> str:
    for rank in range(case.world_size):
        sent = sum(
            call.nbytes
            for call in calls_by_phase(trace, rank).get("forward", [])
            if call.op == "send"
        )
        most = case.facts["forward"]
        if sent > most:
            return (
                f"rank {rank} sends {sent:,} bytes in forward; {most:,} are enough. Keys, values and "
                "positions are passed on world_size - 1 times: then each rank has seen all."
            )
    return ""


EXERCISE = Exercise(
    case,
    (
        OnlyCalls(("send", "recv")),
        Holds(once_around, "keys, values and positions go around once in forward"),
        Calls("send", total="all", why="In backward gradients go the way back."),
    ),
    failed=(
        Failed(
            "does not require grad",
            "The output has no graph: is something detached, or computed under no_grad?",
        ),
    ),
    kind=Kind.MODULE,
    driver=run_attention,
    sizes=(2, 3, 4, 5, 6),
)
