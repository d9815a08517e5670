"""17.2 Two experts for each token (15 min, ●●●○○)

- If an expert has too few places, in which order are they given: token by token, or all first choices
  first? And what do the gates of a token add up to before any token is turned away?
- topk(2) of the softmax gives probabilities and experts, both (tokens, 2). Divide the probabilities by
  their sum. Then count: all first choices in the order of the tokens, after them all second ones; a pair
  whose expert is already full gets a gate of 0.
- pairs in order: experts.T.flatten(). one = one_hot(pairs, E); place = (one.cumsum(0) * one).sum(1) counts
  from 1; kept = (place <= capacity).view(2, -1).T; gates = torch.where(kept, gates, 0); dropped =
  (~kept).sum().item().
"""

import torch

from helpers.checks.author import *
from helpers.exercises.nb17_expert_parallel.in_ranks import run_top_two


def case(draw: Draw) -> Case:
    tokens, count = draw.of(1, 3, 5, 8, 12), draw.whole(2, 5)
    logits, grad = (torch.randn(tokens, k, generator=draw.generator()) for k in (count, 2))
    way = draw.of("any", "one is loved by all", "plenty of room", "no room at all")
    if way == "one is loved by all":
        logits[:, draw.whole(0, count - 1)] += 3
    room = {"plenty of room": 2 * tokens, "no room at all": 0}
    capacity = room.get(way, max(1, -(-2 * tokens // count) - draw.of(0, 0, 1)))
    return Case(
        f"{tokens} tokens, {count} experts, capacity {capacity}",
        [(logits, capacity, grad)],
        right=Reference(1.0),
        facts={"capacity": capacity},
        shown="logits, capacity",
    )


EXERCISE = Exercise(case, kind=Kind.MODULE, driver=run_top_two, reported=("result",), sizes=(1,))
