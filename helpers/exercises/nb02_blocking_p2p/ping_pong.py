"""2.1 Ping-pong (12 min, ●○○○○)

- In every round rank 0 sends and then receives. What must rank 1 do, and in which order?
- `dist.recv(ball, src)` writes into the tensor that you pass. Rank 1 receives into `ball`, adds 1 in place
  (`ball += 1`) and sends the same tensor back.
- for _ in range(rounds): if rank == 0, send to 1 then recv from 1; if rank == 1, recv from 0, add 1, send
  to 0. Ranks 2 and above return None before the loop.
"""

import torch

from helpers.checks.author import *
from helpers.exercises.nb02_blocking_p2p.shared import SIZES, TRANSFERS


def case(draw: Draw) -> Case:
    n, rounds, ball = draw.ranks, draw.of(1, 2, 3, 5), draw.tensor(draw.shape(least=1))
    if ball.is_floating_point() and draw.of(True, False) and not draw.small:
        ball = ball + 2 / torch.finfo(ball.dtype).eps  # so large that rounding loses an added 1
    right = ball
    for _ in range(rounds):
        right = right + 1
    return Case(
        f"{plural(rounds, 'round')} with {tuple(ball.shape)} of {ball.dtype}",
        [(torch.zeros_like(ball) if rank else ball, rounds) for rank in range(n)],
        right=PerRank([right, right, *[None] * (n - 2)]),
        facts={"rounds": rounds},
        tolerance=0,
    )


def expected_calls(case: Case, rank: int) -> tuple[str, ...]:
    return {0: ("send", "recv"), 1: ("recv", "send")}.get(rank, ()) * int(case.facts["rounds"])


EXERCISE = Exercise(
    case,
    (*TRANSFERS, Order(expected_calls, "the ball goes to rank 1 and back once in each round")),
    sizes=SIZES,
)
