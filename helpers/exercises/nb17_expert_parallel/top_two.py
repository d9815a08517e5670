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
    leaf = logits.clone().requires_grad_()
    experts, gates, turned_away = route(leaf, capacity)
    gates.backward(grad)
    right = {"result": "", "experts": experts, "gates": gates.detach(), "turned away": turned_away}
    return Case(
        f"{tokens} tokens, {count} experts, capacity {capacity}",
        [(logits, capacity, grad)],
        right=ByName([right | {"gradient of logits": leaf.grad}], 1.0),
        facts={"capacity": capacity},
        shown="logits, capacity",
    )


def route(logits: torch.Tensor, capacity: int) -> tuple[torch.Tensor, torch.Tensor, int]:
    """Return experts, gates and how many pairs are turned away."""
    gates, experts = logits.softmax(1).topk(2)
    gates = gates / gates.sum(1, keepdim=True)
    taken = [0] * logits.shape[1]
    kept = torch.zeros(len(logits), 2, dtype=torch.bool)
    for c in range(2):
        for t, expert in enumerate(experts[:, c].tolist()):
            kept[t, c] = taken[expert] < capacity
            taken[expert] += 1
    return experts, torch.where(kept, gates, 0.0), int((~kept).sum())


EXERCISE = Exercise(case, kind=Kind.MODULE, driver=run_top_two, reported=("result",), sizes=(1,))
