"""The worlds on which notebook 15's expert parallelism is tried, and how much may travel in each."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import torch

from helpers.exercises.expert_models import mixture
from helpers.exercises.model import Case
from helpers.exercises.tp_parts import PartsAre
from helpers.views.plain import plural

_DTYPE = torch.float64
_FAR = 40.0
"""How far below all others the logits of an expert lie that nobody chooses."""
_NUMBER_BYTES = 8


@dataclass(frozen=True)
class RoutedAre:
    """What a rank must give back, and how many tokens its expert must see, in at least one call."""

    parts: PartsAre
    tokens: int

    def __call__(self, value: Any) -> str:
        seen = value.get("tokens") if isinstance(value, dict) else None
        if isinstance(seen, int) and seen != self.tokens and value.get("output") is not None:
            return f"its expert saw {plural(seen, 'token')}; {self.tokens} chose it"
        problem = self.parts(value)
        if not problem and value.get("calls") == 0:
            return "its expert was not called, and its weights have no gradient"
        return problem


def expert_cases(rng: random.Random) -> Iterator[Case]:
    worlds: tuple[tuple[tuple[int, ...], tuple[int, ...]], ...] = (
        ((5, 3, 4), ()),
        ((3, 6, 1, 4), (2,)),
        ((7, 0, 2), (1,)),
    )
    for counts, unwanted in worlds:
        ranks, features = len(counts), rng.randrange(3, 6)
        while True:
            generator = torch.Generator().manual_seed(rng.randrange(1 << 31))
            x, router = (
                _normal(generator, sum(counts), features),
                _normal(generator, ranks, features),
            )
            x[:, 0] = 1  # so that a router's first column is added to all logits
            for expert in unwanted:
                router[expert] = -_FAR * torch.eye(features, dtype=_DTYPE)[0]
            if _tells_apart((x @ router.T).argmax(1), counts, unwanted):
                break
        weights = [_normal(generator, features, features) for _ in counts]
        yield _case(counts, x, router, weights, _normal(generator, sum(counts), features), unwanted)


def _normal(generator: torch.Generator, *shape: int) -> torch.Tensor:
    return torch.randn(shape, generator=generator, dtype=_DTYPE)


def _tells_apart(choice: torch.Tensor, counts: tuple[int, ...], unwanted: tuple[int, ...]) -> bool:
    """Say whether every other expert is chosen, and whether sorting twice in one rank undoes nothing."""
    if set(choice.tolist()) != set(range(len(counts))) - set(unwanted):
        return False
    orders = [own.argsort(stable=True) for own in choice.split(list(counts))]
    return any(not torch.equal(order, order.argsort()) for order in orders)


def _case(
    counts: tuple[int, ...],
    x: torch.Tensor,
    router: torch.Tensor,
    weights: list[torch.Tensor],
    grad: torch.Tensor,
    unwanted: tuple[int, ...],
) -> Case:
    truth, ranks = mixture(x, router, weights, grad), len(counts)
    inputs, expected, first = [], [], 0
    for rank, count in enumerate(counts):
        own = slice(first, first + count)
        # a replicated router's gradient on a rank is the summand of this rank's own tokens
        of_router = mixture(x[own], router, weights, grad[own]).of_router
        wanted = {
            "output": truth.output[own],
            "gradient of the router": of_router,
            "gradient of x": truth.of_x[own],
            "gradient of the expert": truth.of_experts[rank],
        }
        usual = _usual_outputs(truth.output[own], truth.gate[own, None], truth.choice[own])
        parts: dict[str, torch.Tensor | None] = {**wanted}
        inputs.append((x[own].clone(), router, weights[rank], grad[own].clone()))
        expected.append(
            RoutedAre(PartsAre(parts, ranks, instead=usual), int((truth.choice == rank).sum()))
        )
        first += count
    label = f"{ranks} ranks with {', '.join(map(str, counts))} tokens"
    label += f", expert {unwanted[0]} is chosen by none" if unwanted else ""
    return Case(label, ranks, inputs, expected, timeout_s=8.0)


def _usual_outputs(
    right: torch.Tensor, gate: torch.Tensor, choice: torch.Tensor
) -> dict[str, torch.Tensor]:
    """Give the outputs of a rank to which the usual mistakes lead, by the words for them."""
    order, made = choice.argsort(), right / gate
    others = torch.empty_like(right)
    others[order] = gate * made[order]
    return {
        "the gate is missing": made,
        "its rows are still sorted by expert": gate * made[order],
        "its rows are sorted a second time": gate * made[order][order],
        "its rows are multiplied by the gates of others": others,
    }


def most_exchanged(case: Case, rank: int) -> int:
    """Give the bytes that one exchange needs at most: own tokens, those of the expert, or the counts."""
    x = case.inputs[rank][0]
    assert case.expected is not None
    arrived: int = case.expected[rank].tokens
    row = x.shape[1] * x.element_size()
    return int(max(len(x) * row, arrived * row, _NUMBER_BYTES * case.world_size))
