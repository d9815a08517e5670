"""5.1 Broadcast by a tree (15 min, ●●○○○)

- After each round, twice as many ranks have the tensor, and all of them can send. If the root is rank 0,
  which ranks have it after round 1, 2, 3?
- Number the ranks starting from the root: `me = (rank - src) % world_size`. In the round with `step` = 1, 2,
  4, ... every rank with `me < step` sends to number `me + step`, if this rank exists, and the ranks numbered
  `step` to `2 * step - 1` receive.
- me = (rank - src) % world_size; step = 1; while step < world_size: if me < step: if me + step <
  world_size: send to (me + step + src) % world_size; elif me < 2 * step: receive from (me - step + src) %
  world_size; then step *= 2.
"""

from helpers.checks.author import *
from helpers.checks.rules import OnePortRounds
from helpers.exercises.nb05_collective_algorithms.shared import FAILURE_ADVICE, P2P_ONLY

ALL_SEND_ADVICE = (
    "Every rank that has the tensor can pass it on: let all of them send in each round."
)


def case(draw: Draw) -> Case:
    n, src, x = draw.ranks, draw.rank(), draw.tensor(draw.shape(least=1))
    given = [x if rank == src else draw.tensor(x.shape, x.dtype) for rank in range(n)]
    return Case(
        f"{tuple(x.shape)} of {x.dtype}, from rank {src}",
        [(mine, src) for mine in given],
        right=x,
        tolerance=0,
    )


EXERCISE = Exercise(
    case,
    (
        P2P_ONLY,
        OnePortRounds(
            lambda case: (case.world_size - 1).bit_length(),
            ALL_SEND_ADVICE,
            "takes ⌈log2 p⌉ rounds",
        ),
        Calls(
            "send",
            lambda case, rank: case.world_size - 1,
            all_ranks=True,
            why="Each rank except the root needs the tensor once.",
        ),
    ),
    failed=FAILURE_ADVICE,
    # up to 6 ranks, a binary heap needs no more rounds than the binomial tree
    sizes=(1, 2, 3, 4, 7, 8),
)
