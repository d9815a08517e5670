"""8.3 Unequal batches (12 min, ●●●○○)

- A rank's gradient is a mean over its own samples. What do you multiply it by to get back the sum over its
  samples?
- All ranks need the number of all samples: add up `torch.tensor(float(samples))` with all_reduce. A rank
  without samples hands in zeros.
- total = torch.tensor(float(samples)); dist.all_reduce(total). For each p: g = torch.zeros_like(p) if p.grad
  is None else p.grad; g *= samples / total; dist.all_reduce(g); p.grad = g.
"""

from collections.abc import Sequence

import torch

from helpers.checks.author import *
from helpers.exercises.nb08_synchronous_sgd.in_ranks import with_given_gradients
from helpers.exercises.nb08_synchronous_sgd.shared import (
    STEPS,
    Own,
    each_total,
    has_nan,
    some_made_none,
)
from helpers.exercises.shared.gradients import GUARDED, PARITY, SAME_CALLS, UNEQUAL, Gradients
from helpers.views.plain import plural

NAMES = ("weight", "bias", "table", "scale")
ITS_OWN = (
    "The ranks have {counts} samples, {total} in all. Multiply each gradient by its own number, add up, "
    "and divide by the number of all samples."
)
EMPTY = (
    "Rank {empty} has no samples and so no gradients. It must make the same calls as the others: let it hand "
    "in zeros."
)


def case(draw: Draw) -> Case:
    n, dtype = draw.ranks, draw.dtype(torch.float64, torch.float32)
    kind, counts = draw.of("different", "one has none", "large", "alike"), [0]
    while not any(counts):
        counts = [draw.whole(1, 999 if kind == "large" else 9) for _ in range(n)]
        counts = [counts[0]] * n if kind == "alike" else counts
        counts[draw.rank()] *= kind != "one has none" or n == 1
    names, values, grads = NAMES[: draw.whole(1, 4)], {}, {}
    for name in names:
        shape = draw.shape((0, 1, 2), 1)
        values[name], grads[name] = draw.tensor(shape, dtype), draw.tensors(shape, dtype)
    own: Own = [
        {name: grads[name][rank] if counts[rank] else None for name in names} for rank in range(n)
    ]
    everybody, most = sum(counts), sum(map(bool, counts))
    room = PARITY if dtype == torch.float64 else 1.0
    scale = {name: room * largest(*grads[name]) for name in names}
    mean = each_total(own, [count / everybody for count in counts])
    parts = Gradients(
        [{"weights": "", **mean}] * n, scale, lambda name, got: STEPS if name == "weights" else ""
    )

    def gives(words: str, shares: Sequence[float], divide_by: list[int] | None = None) -> Mistake:
        sums = each_total(own, shares)
        values = [{k: g / d for k, g in sums.items()} for d in divide_by or [1] * n]
        return parts.larger(words, values, max(1, *shares))

    return Case(
        f"{', '.join(map(str, counts))} samples, {plural(len(names), 'parameter')} of {dtype}",
        [
            ([(k, values[k], one[k], True) for k in names], False, count)
            for one, count in zip(own, counts, strict=True)
        ],
        right=parts,
        mistakes=[
            gives("These are the sums over all samples: divide by their number, {total}.", counts),
            gives(ITS_OWN, [1 / n] * n),
            gives(ITS_OWN, [1 / most] * n),
            gives(ITS_OWN, [1.0] * n),
            gives(ITS_OWN, [1 / everybody] * n),
            gives(ITS_OWN, [count / n for count in counts]),
            gives(ITS_OWN, [float(count) for count in counts], [max(1, count) for count in counts]),
            gives(
                "This is right but for a division: it is divided by the number of all samples, and by the "
                "world size as well.",
                [count / everybody / n for count in counts],
            ),
            parts.mistake(
                "The mean belongs to every rank: set `p.grad` also where it was None.",
                [dict.fromkeys(names) if not count else mean for count in counts],
            ),
            parts.mistake(
                "This is its own summand of the mean, or nothing: the others' are missing.",
                [
                    {k: g if g is None else g * c / everybody for k, g in one.items()}
                    for one, c in zip(own, counts, strict=True)
                ],
            ),
            parts.mistake("The gradients are as they were: write the mean into `p.grad`.", own),
            Mistake(
                lambda got, rank: 0 in counts and has_nan(got, rank),
                "The mean loss of no samples is NaN, and NaN times 0 is NaN: begin from zeros.",
            ),
        ],
        facts={
            "bytes": sum(value.nbytes for value in values.values()) + 8,
            "calls": len(names) + 1,
            "counts": ", ".join(map(str, counts)),
            "total": everybody,
            "empty": counts.index(0) if 0 in counts else None,
            "have": counts,
        },
    )


def one_is_empty(case: Case, run: object) -> bool:
    """Tell whether the ranks may be apart because one has no samples."""
    return case.facts["empty"] is not None and not some_made_none(case, run)  # type: ignore[arg-type]


EXERCISE = Exercise(
    case,
    (
        OnlyCalls(("all_reduce",)),
        Travels(
            "all_reduce",
            "each gradient travels once, and one number of samples",
            why="The number of all samples is the same for all gradients: add it up once.",
        ),
        Awaited(),
    ),
    failed=(
        GUARDED,
        Failed(
            "NoneType", "Where a rank has no samples its `p.grad` is None: begin from zeros there."
        ),
        Stuck(EMPTY, when=one_is_empty),
        Stuck(SAME_CALLS),
        Failed("", UNEQUAL, died=True),
    ),
    kind=Kind.MODULE,
    programme=with_given_gradients,
    reported=("weights",),
)
