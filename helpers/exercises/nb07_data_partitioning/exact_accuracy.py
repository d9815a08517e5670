"""7.4 Exact accuracy (10 min, ●●○○○)

- Which of your samples are padding? Position k of rank r is sample r + k * world_size of the data set, if
  there is one with that number.
- Make a mask: `torch.arange(len(labels)) * world_size + rank < length`. Count the right answers under it,
  add up the counts of all ranks, divide once by `length`.
- real = torch.arange(len(labels)) * world_size + rank < length; right = ((predicted == labels) &
  real).sum(); dist.all_reduce(right); return right.item() / length.
"""

import torch

from helpers.checks.author import *
from helpers.exercises.nb07_data_partitioning.shared import torch_gives
from helpers.views.plain import plural

ONCE = "A rank without real samples divides 0 by 0: add up counts, and divide once, at the end."
MEAN = (
    "This is the mean of the ranks' accuracies. Ranks with fewer real samples weigh too much: add up counts, "
    "and divide once."
)
TWO = "Add up counts in each rank first: two numbers have 16 bytes at most."


def case(draw: Draw) -> Case:
    n, length = draw.ranks, draw.length(least=1)
    length += draw.of(0, 0, 0, 0, 0, 5000)
    labels = torch.randint(0, 5, (length,), generator=draw.generator()).to(draw.dtype(*INTEGERS))
    hit = torch.rand(length, generator=draw.generator()) < 0.6
    first = draw.of(True, True, False)  # the samples that padding repeats
    hit[: min(n, length)] = first
    if length > 1:
        hit[-1] = not first
    predicted = torch.where(hit, labels, (labels + 1) % 5)
    dealt = [torch.tensor(torch_gives(length, n, rank)) for rank in range(n)]
    own = [hit[d[: len(range(r, length, n))]].double() for r, d in enumerate(dealt)]
    padded = torch.cat([hit[d] for d in dealt]).double()
    shares = [one.mean().nan_to_num().item() for one in own]
    holding = [share for share, one in zip(shares, own, strict=True) if len(one)]
    return Case(
        plural(length, "sample"),
        [(predicted[d], labels[d], length) for d in dealt],
        right=hit.double().mean().item(),
        mistakes=[
            Mistake(float("nan"), ONCE),
            Mistake(
                padded.sum().item() / length,
                "The sum of right answers still holds those of padded samples.",
            ),
            Mistake(sum(shares) / n, MEAN),
            Mistake(sum(holding) / len(holding), MEAN),
            Mistake(
                padded.mean().item(),
                "The padded samples are counted: which of a rank's positions lie beyond the data?",
            ),
            Mistake(
                hit.sum().item() / len(padded),
                "The right answers are counted rightly, but divided by a number that holds the padding.",
            ),
            Mistake(Each(shares), OWN),
            Mistake(Each([one.sum().item() / length for one in own]), OWN),
            Mistake(Each([hit[d].double().mean().item() for d in dealt]), OWN),
            Mistake(
                hit.sum().item(), "This is the number of right answers: divide it by `length`."
            ),
        ],
    )


OWN = "Here a rank knows of its own right answers only: add up all ranks' by `all_reduce`."
EXERCISE = Exercise(
    case,
    (
        Awaited(),
        OnlyCalls(("all_reduce",)),
        Count("all_reduce", 2, at_most=True),
        HandedIn(16, "no more than two counts in a call", TWO),
    ),
)
