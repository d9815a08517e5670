"""17.2 Two experts for each token (15 min, ●●●○○)

- Who gets a place where there are too few: does it go by token, or by choice? And the gates of a token:
  what do they add up to before anybody is turned away?
- topk(2) of the softmax gives probabilities and experts, both (tokens, 2). Divide the probabilities by
  their sum. Then count: all first choices in the order of the tokens, after them all second ones; whoever
  comes to an expert that is full gets a gate of 0.
- pairs in order: experts.T.flatten(). one = one_hot(pairs, E); place = (one.cumsum(0) * one).sum(1) counts
  from 1; kept = (place <= capacity).view(2, -1).T; gates = torch.where(kept, gates, 0); dropped =
  (~kept).sum().item().
"""

from typing import Any

import torch

from helpers.checks.author import *


def case(draw: Draw) -> Case:
    tokens, count = draw.of(1, 3, 5, 8, 12), draw.whole(2, 5)
    logits = torch.randn(tokens, count, generator=draw.generator())
    way = draw.of("any", "one is loved by all", "plenty of room", "no room at all")
    if way == "one is loved by all":
        logits[:, draw.whole(0, count - 1)] += 3
    room = {"plenty of room": 2 * tokens, "no room at all": 0}
    capacity = room.get(way, max(1, -(-2 * tokens // count) - draw.of(0, 0, 1)))
    right = route(logits, capacity)

    def gives(words: str, **ways: Any) -> Mistake:
        return Mistake(route(logits, capacity, **ways), words)

    return Case(
        f"{tokens} tokens, {count} experts, capacity {capacity}",
        [(logits, capacity)],
        right=right,
        facts={"capacity": capacity},
    )


def route(
    logits: torch.Tensor,
    capacity: int,
    *,
    limit: int | None = None,
    order: str = "choices",
    normalise: str = "before",
    mark: bool = False,
) -> tuple[torch.Tensor, torch.Tensor, int]:
    """Give experts, gates and how many pairs were turned away; the ways to do it otherwise are mistakes'."""
    probabilities, experts = logits.softmax(1).topk(2)
    gates = probabilities
    if normalise == "before":
        gates = gates / gates.sum(1, keepdim=True)
    n, most = len(logits), capacity if limit is None else limit
    pairs = [(t, c) for c in range(2) for t in range(n)]
    if order == "tokens":
        pairs = [(t, c) for t in range(n) for c in range(2)]
    elif order == "likely":
        pairs.sort(key=lambda pair: (pair[1], -float(probabilities[pair])))
    taken = torch.zeros(2 if order == "apart" else 1, logits.shape[1], dtype=torch.int64)
    kept = torch.zeros(n, 2, dtype=torch.bool)
    for t, c in pairs:
        row, expert = (c if order == "apart" else 0), int(experts[t, c])
        kept[t, c] = taken[row, expert] < most
        taken[row, expert] += kept[t, c]
    gates = torch.where(kept, gates, 0.0)
    if normalise == "after":
        gates = gates / gates.sum(1, keepdim=True).clamp(min=1e-9)
    return torch.where(kept, experts, -1) if mark else experts, gates, int((~kept).sum())


EXERCISE = Exercise(case, kind=Kind.LOCAL, sizes=(1,), keeps_input=True)
