"""5.2 All-reduce by recursive doubling (20 min, ●●●○○, further)

- With 4 ranks, ranks 0 and 1 exchange while 2 and 3 exchange. Then ranks 0 and 2 exchange, as well as 1 and
  3. What does every rank hold after each round?
- `partner = rank ^ step` for step = 1, 2, 4, ... Both send at once: `work = dist.isend(total, partner)`,
  `dist.recv(theirs, partner)`, `work.wait()`, and only then `total += theirs`. If the number of ranks isn't
  a power of two, let the extra ranks send their `x` first.
- `most = 2 ** (world_size.bit_length() - 1)`. A rank >= most sends x to rank - most, then receives the sum
  from it. A rank < world_size - most first receives from rank + most and adds. Ranks < most double; then
  those with an extra rank send it the sum.
"""

import torch

from helpers.checks.author import *
from helpers.checks.rules import OnePortRounds
from helpers.exercises.nb05_collective_algorithms.shared import (
    FAILURE_ADVICE,
    P2P_ONLY,
    SEND_FIRST_ADVICE,
    doubling_steps,
    draw_terms,
    extra_ranks,
)


def case(draw: Draw) -> Case:
    n, mine = draw.ranks, draw_terms(draw)
    total, most = torch.stack(mine).sum(0), 1 << (n.bit_length() - 1)

    return Case(
        f"{total.numel()} elements of {total.dtype}",
        [(x,) for x in mine],
        right=total,
        facts={"most": most, "bytes": (n.bit_length() - 1 + (n > most)) * total.nbytes},
        scale=largest(*mine),
    )


EXERCISE = Exercise(
    case,
    (
        P2P_ONLY,
        OnePortRounds(
            lambda case: doubling_steps(case) + 2 * (extra_ranks(case) > 0),
            "Both partners send in each round, so call `isend`, then `recv`, then `wait`.",
            "takes ⌊log2 p⌋ rounds, plus two if p is not a power of two",
        ),
        Calls(
            "send",
            most=lambda case, rank: (
                2 ** doubling_steps(case) * doubling_steps(case) + 2 * extra_ranks(case)
            ),
            all_ranks=True,
        ),
        Calls("send", total_bytes="bytes", why="Each message is one sum, as long as `x`."),
    ),
    failed=(*FAILURE_ADVICE, SEND_FIRST_ADVICE),
    keeps_input=True,
    sizes=(1, 2, 3, 4, 6, 7),
)
