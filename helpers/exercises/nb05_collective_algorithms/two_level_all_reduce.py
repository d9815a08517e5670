"""5.6 Hierarchical all-reduce (20 min, ●●●●○, further)

- There are three steps: inside each host, between the hosts, and inside each host again. Which sum should a
  host compute before any of its data leaves it? And which rank should send which part of that sum?
- Split the tensor into `per_host` chunks. In step one, rank i of a host gets the host's sum of chunk i. In
  step two, the ranks at position i in their hosts add up chunk i. In step three, rank i sends its chunk to
  the others in its host.
- grid = torch.arange(world_size).reshape(-1, per_host); new_group for each of grid.tolist() and of
  grid.T.tolist(), on every rank. total = x.clone(); chunks = total.tensor_split(per_host). dist.reduce each
  chunk to its owner in the host's group, all_reduce chunks[rank % per_host] between hosts, dist.broadcast
  each chunk from its owner.
"""

from math import ceil

import torch

from helpers.checks.author import *
from helpers.exercises.nb05_collective_algorithms.in_ranks import run_in_two_levels
from helpers.exercises.nb05_collective_algorithms.shared import draw_terms
from helpers.exercises.shared.crash_advice import GROUP_AS_OP
from helpers.trace.volume import bytes_sent

PER_HOST_CHOICES = {1: (1,), 2: (1, 2), 4: (2, 2, 4), 6: (2, 3), 8: (2, 4, 4)}


def case(draw: Draw) -> Case:
    n = draw.ranks
    per_host = draw.of(*PER_HOST_CHOICES[n])
    mine = draw_terms(draw)
    grid = torch.stack(mine).reshape(n // per_host, per_host, -1)
    total = grid.sum((0, 1))
    hosts = n // per_host
    part = ceil(total.numel() / n)  # elements sent by a rank in one step of a ring over hosts
    right = NamedParts([{"sum": total, "x": ""}] * n, scale=largest(*mine))

    return Case(
        f"{hosts} x {per_host} ranks, {total.numel()} elements of {total.dtype}",
        [(x, per_host) for x in mine],
        right=right,
        telling=1 < per_host < n and total.numel() >= n,
        facts={"per_host": per_host, "most": 2 * (hosts - 1) * part * total.element_size()},
    )


def find_excess_between_hosts(trace: Trace, case: Case) -> str:
    """Return the first call that makes a rank send more to other hosts than one chunk's ring requires."""
    per_host, most = case.facts["per_host"], case.facts["most"]
    for rank in range(case.world_size):
        sent = 0.0
        for event in trace.of(rank):
            members = [event.rank, event.peer] if event.op == "send" else event.group_ranks
            homes = [member // per_host for member in members if member is not None]
            if event.op in {"span", "recv", "barrier"} or len(set(homes)) < 2:
                continue
            if event.op != "send" and len(set(homes)) < len(homes):
                return (
                    f"rank {rank} calls {event.call}{at(event)} in a group of ranks "
                    f"{', '.join(map(str, members))}, which spans several hosts and has more than one rank "
                    "on some of them. A group between hosts should have one rank per host."
                )
            sent += bytes_sent(event)
            if event.op == "broadcast" and _forwards_broadcast(event):
                sent += event.nbytes
            if sent > most:
                return (
                    f"rank {rank} sends {round(sent):,} bytes to other hosts, with "
                    f"{event.call}{at(event)}; {most:,} bytes are enough for a ring all-reduce of one of "
                    "the `per_host` chunks."
                )
    return ""


def _forwards_broadcast(event: Event) -> bool:
    """Return whether a rank other than the root forwards a broadcast, as in a chain."""
    ranks = event.group_ranks
    if event.root not in ranks:
        return False
    return 0 < (ranks.index(event.rank) - ranks.index(event.root)) % len(ranks) < len(ranks) - 1


EXERCISE = Exercise(
    case,
    (
        WaitsForAll(),
        Predicate(
            find_excess_between_hosts,
            "between hosts, groups have one rank per host, and a rank sends at most 2(h - 1)/h of a chunk",
        ),
    ),
    failed=(GROUP_AS_OP,),
    kind=Kind.MODULE,
    driver=run_in_two_levels,
    reported=("x",),
    sizes=(1, 2, 4, 6, 8),
    count=20,
)
