"""Show each rank's samples from torch's DistributedSampler, for any length and world size."""

from __future__ import annotations

from collections import Counter
from typing import Any

from helpers.explorers.form import Control, choice, steps

_SWITCH = {"no": False, "yes": True}
_MAX_SAMPLES, _EPOCHS = 32, 2
TITLE = "Which rank is given which sample"
CONTROLS: tuple[Control, ...] = (
    steps("samples", "samples", range(1, _MAX_SAMPLES + 1)),
    steps("ranks", "ranks", range(1, 9)),
    choice("shuffle", "shuffle", _SWITCH),
    choice("drop_last", "drop_last", _SWITCH),
    choice("set_epoch", "set_epoch", {"called": True, "forgotten": False}),
)
START_SETTING = {"samples": 10, "ranks": 4, "shuffle": False, "drop_last": False, "set_epoch": True}
SENTENCE_TEMPLATES = {
    "row": "epoch {epoch}, rank {rank}: {listed}",
    "says": "{samples:sample} on {ranks:rank}: each rank is given {each:sample} per epoch. {left_out:sample} "
    "left out, {repeated:sample} given more than once. The order of the second epoch is {order}.",
}


def page_data() -> dict[str, Any]:
    """Return torch's shuffled order for each number of samples and each epoch."""
    shuffled = [
        [_samples_of_rank(samples, 1, 0, True, False, epoch) for samples in range(_MAX_SAMPLES + 1)]
        for epoch in range(_EPOCHS)
    ]
    return {"shuffled": shuffled}


def plan(
    samples: int, ranks: int, shuffle: bool, drop_last: bool, set_epoch: bool
) -> dict[str, Any]:
    """Return each rank's samples from the sampler in two epochs."""
    epochs = [
        [
            _samples_of_rank(samples, ranks, rank, shuffle, drop_last, epoch * set_epoch)
            for rank in range(ranks)
        ]
        for epoch in range(_EPOCHS)
    ]
    counts = Counter(index for own in epochs[0] for index in own)
    return {
        "each": len(epochs[0][0]),
        "left_out": samples - len(counts),
        "repeated": sum(count > 1 for count in counts.values()),
        "order": "the same" if epochs[0] == epochs[1] else "different",
        "rows": [
            {"epoch": e, "rank": r, "own": own, "listed": " ".join(map(str, own)) or "nothing"}
            for e, epoch in enumerate(epochs)
            for r, own in enumerate(epoch)
        ],
    }


def _samples_of_rank(
    samples: int, ranks: int, rank: int, shuffle: bool, drop_last: bool, epoch: int
) -> list[int]:
    from torch.utils.data import DistributedSampler

    sampler: DistributedSampler[int] = DistributedSampler(
        range(samples),  # type: ignore[arg-type]
        num_replicas=ranks,
        rank=rank,
        shuffle=shuffle,
        drop_last=drop_last,
    )
    sampler.set_epoch(epoch)
    return list(sampler)
