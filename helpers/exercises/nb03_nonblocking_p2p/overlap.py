"""3.5 Overlap communication with computation (10 min, ●●○○○)

- Three steps: issue, compute, wait. Which of them needs the tensor of the previous rank?
- Only the sum at the end needs the received tensor. So call `compute()` after starting isend and irecv, and
  before the first wait.
- box = torch.empty_like(x); works = [isend x to the next rank, irecv box from the one before]; mine =
  compute(); for work in works: work.wait(); return mine + box.
"""

from helpers.checks.author import *
from helpers.checks.rules_spans import SpanInFlight
from helpers.exercises.nb03_nonblocking_p2p.in_ranks import COMPUTE, run_with_compute
from helpers.exercises.nb03_nonblocking_p2p.shared import FAILURE_ADVICE, SIZES, TRANSFERS


def case(draw: Draw) -> Case:
    shape, n = draw.shape(least=1), draw.ranks
    pairs = draw.tensors((2, *shape))
    mine, results = [pair[0].clone() for pair in pairs], [pair[1].clone() for pair in pairs]
    came = [mine[rank - 1] for rank in range(n)]
    return Case(
        f"{shape} of {mine[0].dtype}",
        [(x, result) for x, result in zip(mine, results, strict=True)],
        right=PerRank([a + b for a, b in zip(results, came, strict=True)]),
        tolerance=0,
        shown="x, compute",
    )


EXERCISE = Exercise(
    case,
    (
        *TRANSFERS,
        Calls("send", 1),
        Calls("recv", 1),
        Peers(lambda case, rank: ((rank + 1) % case.world_size,), "each rank sends to the next"),
        SpanInFlight(COMPUTE),
    ),
    failed=FAILURE_ADVICE,
    kind=Kind.MODULE,
    driver=run_with_compute,
    sizes=SIZES,
)
