"""5.4 All-reduce by a parameter server (8 min, ●●○○○, further)

- There are two roles: what does the server do, and what does every other rank do? Write them as two branches.
- A worker sends its gradient (push), then receives the sum (pull). The server receives from one worker after
  the other, adds each gradient to a sum that starts with its own, and then sends the sum to all workers.
- workers = [r for r in range(world_size) if r != server]; on the server: total = x.clone(), box =
  torch.empty_like(x); for each worker: recv box, total += box; for each worker: send total. On a worker:
  send x, recv into a new tensor.
"""

import torch

from helpers.checks.author import *
from helpers.checks.rules import Case as RuleCase
from helpers.exercises.nb05_collective_algorithms.shared import FAILURE_ADVICE, P2P_ONLY

PUSH_ONCE_ADVICE = "Each worker sends its tensor once, and the server answers each worker once."


def case(draw: Draw) -> Case:
    server = draw.rank()
    mine = draw.tensors(draw.shape(least=1), draw.dtype(*SUMMED))
    total = torch.stack(mine).sum(0)
    return Case(
        f"{tuple(total.shape)} of {total.dtype}, rank {server} is the server",
        [(x, server) for x in mine],
        right=total,
        facts={"server": server, "bytes": total.nbytes},
        scale=largest(*mine),
    )


def allowed_peers(case: RuleCase, rank: int) -> tuple[int, ...]:
    """Return the ranks to which a rank may send."""
    server: int = case.facts["server"]
    return tuple(r for r in range(case.world_size) if r != rank) if rank == server else (server,)


EXERCISE = Exercise(
    case,
    (
        P2P_ONLY,
        Peers(allowed_peers, "workers send only to the server"),
        Calls("send", lambda case, rank: len(allowed_peers(case, rank)), why=PUSH_ONCE_ADVICE),
        Calls(
            "send",
            total_bytes=lambda case, rank: len(allowed_peers(case, rank)) * case.facts["bytes"],
        ),
    ),
    failed=FAILURE_ADVICE,
    keeps_input=True,
)
