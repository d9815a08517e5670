"""5.3 Ring all-reduce (25 min, ●●●●○)

- You need two trips around the ring. On the first, each chunk collects the sum as it passes from rank to
  rank, and on the second, the finished chunks are copied. Which chunk does rank r send in step s?
- First trip: in step s, rank r sends chunk (r - s) % p and receives chunk (r - s - 1) % p, which it adds.
  After p - 1 steps, rank r holds the finished chunk (r + 1) % p. Second trip: it sends chunk (r + 1 - s) % p,
  and the received chunk replaces chunk (r - s) % p.
- total = x.clone(); chunks = list(total.tensor_split(p)), which are views of total. In each step: work =
  dist.isend(chunks[out], next); box = torch.empty_like(chunks[into]); dist.recv(box, before); work.wait();
  then `chunks[into] += box` on the first trip, `chunks[into].copy_(box)` on the second. Return total.
"""

import torch

from helpers.checks.author import *
from helpers.checks.rules import Case as RuleCase
from helpers.checks.rules import OnePortRounds
from helpers.exercises.nb05_collective_algorithms.shared import (
    FAILURE_ADVICE,
    P2P_ONLY,
    SEND_FIRST_ADVICE,
    draw_terms,
)

SEND_TOGETHER_ADVICE = (
    "All ranks send at once in each round, so call `isend`, then `recv`, then `wait`."
)
CHUNK_ADVICE = (
    "That's 2(p - 1) messages of one chunk each, and a chunk has at most ⌈N / p⌉ elements."
)


def case(draw: Draw) -> Case:
    n, mine = draw.ranks, draw_terms(draw)
    total = torch.stack(mine).sum(0)
    length, chunk = total.numel(), -(-total.numel() // n) * total.element_size()
    return Case(
        f"{length} elements of {total.dtype}",
        [(x,) for x in mine],
        right=total,
        facts={"chunk": chunk, "bytes": 2 * (n - 1) * chunk, "rounds": 2 * (n - 1)},
        scale=largest(*mine),
    )


def find_large_message(trace: Trace, case: RuleCase) -> str:
    for event in trace.calls:
        if event.op == "send" and event.nbytes > case.facts["chunk"]:
            return (
                f"rank {event.rank} sends {event.nbytes} bytes in one message{at(event)}; a chunk of ⌈N / "
                f"p⌉ elements has {case.facts['chunk']} bytes."
            )
    return ""


EXERCISE = Exercise(
    case,
    (
        P2P_ONLY,
        Peers(lambda case, r: ((r + 1) % case.world_size,), "each rank sends to the next"),
        Predicate(find_large_message, "no message is larger than a chunk", on_each_call=True),
        Calls("send", total_bytes="bytes", why=CHUNK_ADVICE),
        OnePortRounds(
            lambda case: case.facts["rounds"], SEND_TOGETHER_ADVICE, "takes 2(p - 1) rounds"
        ),
    ),
    failed=(*FAILURE_ADVICE, SEND_FIRST_ADVICE),
    keeps_input=True,
)
