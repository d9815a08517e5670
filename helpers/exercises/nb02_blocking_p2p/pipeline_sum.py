"""2.5 Pipeline sum (25 min, ●●●○○, further)

- Without chunks, rank 3 idles until the whole tensor has passed through ranks 0, 1 and 2.
- Loop over `x.split(chunk)`. In each iteration, receive the sum so far from the rank before (if there is
  one), add your own chunk, and send the result to the next rank (if there is one).
- for part in x.split(chunk): total = part.clone(); if rank > 0: recv into `before`, total += before; if
  rank < world_size - 1: send total; append it. Return torch.cat.
"""

from itertools import accumulate

import torch

from helpers.checks.author import *
from helpers.exercises.nb02_blocking_p2p.shared import SIZES, TRANSFERS


def case(draw: Draw) -> Case:
    chunk, whole = draw.whole(1, 4), draw.whole(1, 3)
    left_over = draw.of(0, 1, 2, 3) % chunk
    length = draw.of(chunk * whole, chunk * whole, left_over or 1) + left_over
    mine = draw.tensors((length,))
    return Case(
        f"{plural(length, 'element')} of {mine[0].dtype}, chunks of {chunk}",
        [(x, chunk) for x in mine],
        right=PerRank(list(accumulate(mine, torch.add))),
        facts={"chunk": chunk, "chunks": -(-length // chunk), "itemsize": mine[0].itemsize},
        tolerance=0,
    )


def find_large_message(trace: Trace, case: Case) -> str:
    chunk, most = case.facts["chunk"], case.facts["chunk"] * case.facts["itemsize"]
    for event in trace.calls:
        if event.op == "send" and event.nbytes > most:
            return (
                f"rank {event.rank} sends {event.nbytes} bytes of {event.dtype}{at(event)}; a chunk of "
                f"{chunk} elements has at most {most} bytes."
            )
    return ""


def expected_calls(case: Case, rank: int) -> tuple[str, ...]:
    """Return a rank's order of calls: a middle rank forwards each chunk before it receives the next."""
    one = ("recv",) * (rank > 0) + ("send",) * (rank < case.world_size - 1)
    return one * int(case.facts["chunks"])


def next_rank(case: Case, rank: int) -> tuple[int, ...]:
    return (rank + 1,) if rank + 1 < case.world_size else ()


EXERCISE = Exercise(
    case,
    (
        *TRANSFERS,
        Predicate(find_large_message, "no message is larger than a chunk", on_each_call=True),
        Order(expected_calls, "each chunk is sent on before the next is received"),
        Peers(next_rank, "each rank except the last sends to the next"),
    ),
    sizes=SIZES,
)
