"""5.3 Ring all-reduce (25 min, ●●●●○)

- Two trips around the ring. On the first, each chunk collects the sum as it passes from rank to rank; on the
  second, the finished chunks are copied. Which chunk does rank r send in step s?
- First trip: in step s rank r sends chunk (r - s) % p and receives chunk (r - s - 1) % p, which it adds.
  After p - 1 steps rank r holds the finished chunk (r + 1) % p. Second trip: it sends chunk (r + 1 - s) % p,
  and what it receives replaces chunk (r - s) % p.
- total = x.clone(); chunks = list(total.tensor_split(p)), which are views of total. In each step: work =
  dist.isend(chunks[out], next); box = torch.empty_like(chunks[into]); dist.recv(box, before); work.wait();
  then `chunks[into] += box` on the first trip, `chunks[into].copy_(box)` on the second. Return total.
"""

import torch

from helpers.checks.author import *
from helpers.checks.rules_rounds import PortRounds
from helpers.exercises.nb05_collective_algorithms.shared import (
    FAILED,
    P2P,
    SEND_FIRST,
    summands,
)

CHUNKS = (
    "How many chunks are there? `torch.chunk` and `torch.split` may make fewer than there are ranks; "
    "`x.tensor_split(world_size)` never does."
)
AT_ONCE = "In a round all ranks send at once: `isend`, then `recv`, then `wait`."
ONE_CHUNK = "That is 2(p - 1) messages of one chunk; a chunk has ⌈N / p⌉ elements at most."


def case(draw: Draw) -> Case:
    n, mine = draw.ranks, summands(draw)
    total = torch.stack(mine).sum(0)
    length, whole = total.numel(), total.numel() // n * n
    around(mine, 0)
    [torch.cat([total[:whole], x[whole:]]) for x in mine]
    return Case(
        f"{length} elements of {total.dtype}",
        [(x,) for x in mine],
        right=total,
        facts={
            "bytes": 2 * (n - 1) * -(-length // n) * total.element_size(),
            "rounds": 2 * (n - 1),
        },
        scale=largest(*mine),
    )


def around(held: list[torch.Tensor], trip: int) -> list[torch.Tensor]:
    """Send chunks around the ring once; what comes in is added, on the second trip, too."""
    p = len(held)
    held = [x.clone() for x in held]
    chunks = [x.tensor_split(p) for x in held]
    for step in range(p - 1):
        sent = [chunks[r][(r + trip - step) % p].clone() for r in range(p)]
        for r in range(p):
            chunks[r][(r + trip - step - 1) % p].add_(sent[r - 1])
    return held


EXERCISE = Exercise(
    case,
    (
        P2P,
        Peers(lambda case, r: ((r + 1) % case.world_size,), "each rank sends to the next"),
        BytesSent("bytes", ONE_CHUNK),
        PortRounds(lambda case: case.facts["rounds"], AT_ONCE, "takes 2(p - 1) rounds"),
    ),
    failed=(*FAILED, SEND_FIRST, Failed("index out of range", CHUNKS)),
    keeps_input=True,
)
