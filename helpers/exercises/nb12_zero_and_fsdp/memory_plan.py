"""12.5 Plan the memory (8 min, ●●○○○, further)

- Write down the bytes of one parameter: how many are weight, gradient, state? Then ask for each stage which
  of them are cut.
- own = -(-sum(layers) // ranks). Stage 1: 4 bytes for each element of all, 12 for each of own. Stage 2: 2
  and 14. Stage 3: 16 for own, and one layer whole.
- needs[3] = 16 * own + 4 * max(layers). stage = next((n for n, need in enumerate(needs) if need <= memory),
  None).
"""

from typing import Any

from helpers.checks.author import *
from helpers.exercises.nb12_zero_and_fsdp.shared import share
from helpers.views.plain import plural

ROW = (
    "The table's row for ZeRO-{}: what is `in shards` counts for the share, the rest for the elements of all "
    "layers."
)
WRONG = (
    "The table's first row: 2 + 2 + 12 bytes, times the elements of all layers.",
    f"{ROW.format(1)} Weights and gradients whole, 4 bytes; the state's 12 bytes in shards.",
    f"{ROW.format(2)} Weights whole, 2 bytes; gradients and state in shards, 14 bytes.",
    "The sentence below the table: 16 bytes for each element of the share, and the largest layer's weight "
    "and gradient, 2 + 2 bytes for each of its elements.",
)


def case(draw: Draw) -> Case:
    ranks = draw.of(1, 2, 3, 7, 8, 16, 64, 1000, 16384)
    top = draw.of(9, 1_000, 90_000_000, 400_000_000_000)
    layers = [draw.whole(1, top) for _ in range(draw.whole(1, 30))]
    layers += [draw.of(layers[0], 1)] * draw.whole(0, 9)
    draw.rng.shuffle(layers)
    total, own, largest_one = sum(layers), share(sum(layers), ranks), max(layers)
    needs = needs_of(total, own, largest_one)
    stage = draw.of(0, 1, 2, 3, None)
    limit = min(needs) - 1 if stage is None else needs[stage] + draw.of(0, 0, 1)
    memory = int(limit)
    first = next((k for k, need in enumerate(needs) if need <= memory), None)
    min(range(4), key=lambda k: needs[k])
    next((k for k, need in enumerate(needs) if need < memory), None)

    def of(given: Any) -> list[Any]:
        return list(given[0]) if isinstance(given, (tuple, list)) and len(given) == 2 else []

    def third(value: float) -> Any:
        return lambda got, rank: of(got)[:3] == needs[:3] and of(got)[3] == value

    def nth(k: int) -> Any:
        return lambda got, rank: of(got)[k] != needs[k]

    def share_of(size: float) -> Any:
        return lambda got, rank: same(needs_of(total, size, largest_one), of(got), 1e-15)

    def chosen(other: Any) -> Any:
        return lambda got, rank: of(got) == needs and got[1] == other != first

    return Case(
        f"{plural(len(layers), 'layer')}, {total:,} parameters, {plural(ranks, 'rank')}",
        [(layers, ranks, memory)],
        right=(needs, first),
    )


def needs_of(total: int, own: float, top: int) -> list[float]:
    """Give the bytes that a rank needs at each stage."""
    return [16 * total, 4 * total + 12 * own, 2 * total + 14 * own, 16 * own + 4 * top]


EXERCISE = Exercise(case, kind=Kind.LOCAL)
