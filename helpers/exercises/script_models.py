"""The model of notebook 15's training script, and what one process computes with the script repaired."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import nn
from torch.nn.functional import cross_entropy
from torch.utils.data import DistributedSampler

from helpers.exercises.sgd_models import HIDDEN, weights

LR, MOMENTUM = 0.1, 0.9
Samples = tuple[torch.Tensor, torch.Tensor]


class FixedDropout(nn.Module):
    """Dropout that drops every third element, always the same ones: training can be repeated."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if not self.training:
            return x
        kept = (torch.arange(x.shape[-1]) % 3 > 0).to(x.dtype)
        return x * kept * 1.5


def classifier_with_dropout(seed: int) -> nn.Module:
    """Build a classifier of digits in float64; its weights depend on `seed` alone."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        hidden = (nn.Linear(64, HIDDEN), nn.ReLU(), FixedDropout())
        return nn.Sequential(*hidden, nn.Linear(HIDDEN, 10)).double()


@dataclass(frozen=True)
class Settings:
    """What the script is given besides data: samples in a microbatch of a rank, and the rest of it."""

    batch_size: int
    accumulate: int
    clip: float
    epochs: int

    def as_dict(self) -> dict[str, int | float]:
        return dict(vars(self))


@dataclass(frozen=True)
class ScriptTruth:
    """Of one process: weights before and after every step, and the accuracy after every epoch."""

    before: torch.Tensor
    after: tuple[torch.Tensor, ...]
    accuracies: tuple[float, ...]


def microbatches(
    train: Samples, ranks: int, settings: Settings, epoch: int
) -> list[list[list[int]]]:
    """Give, for each rank, the samples of each of its microbatches in an epoch, by their numbers."""
    found = []
    for rank in range(ranks):
        sampler = DistributedSampler(range(len(train[0])), ranks, rank)  # type: ignore[arg-type, var-annotated]
        sampler.set_epoch(epoch)
        own, size = list(sampler), settings.batch_size
        found.append([own[i : i + size] for i in range(0, len(own), size)])
    return found


def trained_by_one(
    seed: int, train: Samples, test: Samples, ranks: int, settings: Settings
) -> ScriptTruth:
    """Train one process on what all ranks together learn from in each step."""
    model = classifier_with_dropout(seed)
    before, after, accuracies = weights(model), [], []
    optimizer = torch.optim.SGD(model.parameters(), lr=LR, momentum=MOMENTUM)
    for epoch in range(settings.epochs):
        model.train()
        shares = microbatches(train, ranks, settings, epoch)
        for begin in range(0, len(shares[0]), settings.accumulate):
            window = slice(begin, begin + settings.accumulate)
            together = [i for share in shares for part in share[window] for i in part]
            optimizer.zero_grad()
            cross_entropy(model(train[0][together]), train[1][together]).backward()
            nn.utils.clip_grad_norm_(model.parameters(), settings.clip)
            optimizer.step()
            after.append(weights(model))
        model.eval()
        with torch.no_grad():
            right = model(test[0]).argmax(1) == test[1]
        accuracies.append(right.double().mean().item())
    return ScriptTruth(before, tuple(after), tuple(accuracies))
