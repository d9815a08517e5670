"""20.4 Which rank computes wrong? (20 min, ●●●○○)

- Which ranks must have the same bits? And if two of them disagree, how do you find out which one is wrong?
- Compute digests of the shard, of this rank's five gradients, and of the five gradients of the rank before
  it. Then gather all digests. A shard is wrong if its digest differs from those of all its copies. A rank
  computing wrong numbers disagrees with both of its neighbors.
- own = torch.tensor([digest(shard), five of gradient(rank, step), five of gradient((rank - 1) % world_size,
  step)]); all_gather; pair r disagrees if row r's own five differ from the last five of row (r + 1) %
  world_size. Rank r is wrong if pair r and pair r - 1 disagree.
"""

from typing import Any

import torch

from helpers.checks.author import *
from helpers.exercises.nb20_without_a_restart.in_ranks.wrong_rank import STEPS, flip_bit, run_search

NUMBERS = 600
MAX_BYTES = 1000
MAX_CALLS = 2 * STEPS


def case(draw: Draw) -> Case:
    n = draw.ranks
    shards = draw.of(2, 2, 1) if n >= 6 else 1  # so that there are three copies
    dtype = draw.dtype(torch.float32, torch.bfloat16)
    whole = torch.randn(shards, NUMBERS, generator=draw.generator()).to(dtype)
    whole[:, 7] = 0
    kind = draw.of("both", "a wrong shard", "a wrong gradient", "one rank", "both", "none wrong")
    first, second = draw.rank(), draw.of(draw.rank(), draw.rank(), 0)
    if draw.of(False, True, False):
        first %= shards  # the first copy is wrong
    if kind == "both" and first == second:
        second = (first + 1) % n
    wrong_shard = first if kind in ("both", "a wrong shard", "one rank") else None
    computes_wrong = {"both": second, "a wrong gradient": second, "one rank": first}.get(kind)
    ours = [whole[r % shards].clone() for r in range(n)]
    if wrong_shard is not None:
        place, bit = draw.of((7, -1), (300, 0), (draw.whole(100, 500), 3), (599, -2))
        ours[wrong_shard] = flip_bit(ours[wrong_shard], place, bit)
    step, seed = draw.of(4, 0, 2, 4, 1, 3, 0), draw.whole(0, 10**6)
    place, bit = draw.of((250, 0), (0, -1), (499, -2), (draw.whole(100, 400), 2))
    wrong = None if computes_wrong is None else (computes_wrong, step, place, bit)
    return Case(
        f"{kind}, {shards} {'shard' if shards == 1 else 'shards'}, {dtype}",
        [(shards, own, wrong, seed) for own in ours],
        right=make_judge(wrong_shard, computes_wrong),
        like={"found": None, "calls": 0},
        facts={"bytes": MAX_BYTES},
        shown=f"{shards} {'shard' if shards == 1 else 'shards'} for each replica",
        telling=kind != "none wrong",
    )


def make_judge(wrong_shard: int | None, computes_wrong: int | None) -> Any:
    """Return the judge of one rank's pair, and of how many microbatches it ran."""

    def judge(got: Any, rank: int) -> Finding | None:
        found = got["found"]
        if found is None:
            return Finding("nothing was returned", "Return a pair: (wrong shard, computes wrong).")
        if not (isinstance(found, list) and len(found) == 2):
            return Finding(f"it returns {found!r}", "Return a pair: (wrong shard, computes wrong).")
        names = ("the rank with the wrong shard", "the rank that computes wrong")
        for name, right, own in zip(names, (wrong_shard, computes_wrong), found, strict=True):
            if own != right or isinstance(own, bool):
                return Finding(f"it returns {own} as {name}; it is {right}")
        if got["calls"] > MAX_CALLS:
            return Finding(
                f"it calls `gradient` {got['calls']} times; {MAX_CALLS} are enough",
                "Each rank runs its own five microbatches, and those of the rank before it.",
            )
        return None

    return judge


EXERCISE = Exercise(
    case,
    (
        Calls(
            total_bytes="bytes",
            text="sends digests, not tensors",
            why="A digest has eight bytes, however large the tensor is.",
            large_advice="A digest has eight bytes, however large the tensor is.",
        ),
        WaitsForAll(),
    ),
    failed=(HangAdvice("Every rank must make the same calls, in the same order."),),
    kind=Kind.MODULE,
    driver=run_search,
    reported=("calls",),
    sizes=(3, 4, 6, 8),
    count=20,
)
