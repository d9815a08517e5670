"""12.5 Plan the memory (8 min, ●●○○○, further)

- Write down the bytes of one parameter: how many are weight, gradient, state? Then decide for each stage
  which of these bytes are sharded.
- own = -(-sum(layers) // ranks). Stage 1: 4 bytes for each of all elements, 12 for each of own. Stage 2: 2
  and 14. Stage 3: 16 for own, and one layer whole.
- needs[3] = 16 * own + 4 * max(layers). stage = next((n for n, need in enumerate(needs) if need <= memory),
  None).
"""

from helpers.checks.author import *
from helpers.exercises.nb12_zero_and_fsdp.shared import share


def case(draw: Draw) -> Case:
    ranks = draw.of(1, 2, 3, 7, 8, 16, 64, 1000, 16384)
    # the last one is too large for exact floats
    top = draw.of(9, 1_000, 90_000_000, 400_000_000_000, 10**16)
    layers = [draw.whole(1, top) for _ in range(draw.whole(1, 30))]
    layers += [draw.of(layers[0], 1)] * draw.whole(0, 9)
    draw.rng.shuffle(layers)
    total, own, top_one = sum(layers), share(sum(layers), ranks), max(layers)
    needs = [16 * total, 4 * total + 12 * own, 2 * total + 14 * own, 16 * own + 4 * top_one]
    stage = draw.of(0, 1, 2, 3, None)
    memory = min(needs) - 1 if stage is None else needs[stage] + draw.of(0, 0, 1)
    first = next((k for k, need in enumerate(needs) if need <= memory), None)
    return Case(
        f"{plural(len(layers), 'layer')}, {total:,} parameters, {plural(ranks, 'rank')}",
        [(layers, ranks, memory)],
        right=(needs, first),
    )


EXERCISE = Exercise(case, kind=Kind.LOCAL, keeps_input=True)
