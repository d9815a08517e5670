"""3.3 Halo exchange (15 min, ●●●○○)

- Which cells of its neighbors does a block need for one sweep? And what takes their place at the two ends of
  the rod?
- In each sweep, make two halo tensors of one cell, filled with `left` and `right` where there is no neighbor.
  Start an isend and an irecv for each neighbor, and wait for all of them. Then you need `torch.cat([west,
  block, east])` and one line of arithmetic.
- west, east = block.new_tensor([left]), block.new_tensor([right]); if rank > 0: isend block[:1], irecv
  west; if rank < world_size - 1: isend block[-1:], irecv east; wait for all; padded = cat([west, block,
  east]); block = (padded[:-2] + padded[2:]) / 2.
"""

import torch

from helpers.checks.author import *
from helpers.checks.rules_transfers import InFlightTogether
from helpers.exercises.nb03_nonblocking_p2p.in_ranks import run_keeping_transfers
from helpers.exercises.nb03_nonblocking_p2p.shared import FAILURE_ADVICE, TRANSFERS

ENDS_ADVICE = "The rod isn't a ring, so rank 0 and the last rank have only one neighbor each."


def jacobi(rod: torch.Tensor, left: float, right: float, sweeps: int) -> torch.Tensor:
    """Return the rod after `sweeps` sweeps in one process."""
    for _ in range(sweeps):
        around = torch.cat([rod.new_tensor([left]), rod, rod.new_tensor([right])])
        rod = (around[:-2] + around[2:]) / 2
    return rod


def case(draw: Draw) -> Case:
    sweeps = draw.of(1, 2, 3, 5, 0, 8)
    sizes = [draw.of(1, 1, 2, 3, 4, 6) for _ in range(draw.ranks)]
    left, right = draw.whole(400, 999) / 7, draw.whole(-400, -99) / 7
    rod = draw.tensor((sum(sizes),), draw.of(torch.float64, torch.float32), scale=1.0)
    return Case(
        f"{' + '.join(map(str, sizes))} cells of {rod.dtype}, {plural(sweeps, 'sweep')}",
        [(block.clone(), left, right, sweeps) for block in rod.split(sizes)],
        right=PerRank(list(jacobi(rod, left, right, sweeps).split(sizes))),
        facts={"sweeps": sweeps, "itemsize": rod.itemsize},
        scale=150.0,
    )


def neighbors(case: Case, rank: int) -> tuple[int, ...]:
    return tuple(r for r in (rank - 1, rank + 1) if 0 <= r < case.world_size)


def transfer_count(case: Case, rank: int) -> int:
    return int(case.facts["sweeps"]) * len(neighbors(case, rank))


def find_wrong_size(trace: Trace, case: Case) -> str:
    for event in trace.calls:
        if event.op == "send" and event.nbytes != case.facts["itemsize"]:
            return (
                f"rank {event.rank} sends {event.nbytes} bytes of {event.dtype}{at(event)}; expected: "
                f"{case.facts['itemsize']} bytes, because a neighbor needs one cell in the rod's dtype."
            )
    return ""


EXERCISE = Exercise(
    case,
    (
        *TRANSFERS,
        Predicate(find_wrong_size, "one cell goes to each neighbor", on_each_call=True),
        Calls(
            "send",
            transfer_count,
            why=f"That's one message to each neighbor in each sweep. {ENDS_ADVICE}",
        ),
        Calls(
            "recv",
            transfer_count,
            why=f"That's one message from each neighbor in each sweep. {ENDS_ADVICE}",
        ),
        Peers(neighbors, "each rank sends to its neighbors"),
        InFlightTogether(
            lambda case, rank: 2 * len(neighbors(case, rank)),
            "all transfers of a sweep are in flight together",
        ),
    ),
    failed=FAILURE_ADVICE,
    kind=Kind.MODULE,
    driver=run_keeping_transfers,
)
