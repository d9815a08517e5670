"""The worlds on which notebook 15's training script is tried, and what is wrong with it, by its effect.

`ScriptTrains` judges a whole run, most basic things first, so that a learner goes from bug to bug.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import torch

from helpers.exercises import draws
from helpers.exercises.compare import difference
from helpers.exercises.look_at_sgd import PARITY, apart
from helpers.exercises.model import Case
from helpers.exercises.script_models import (
    LR,
    ScriptTruth,
    Settings,
    classifier_with_dropout,
    microbatches,
    trained_by_one,
)
from helpers.exercises.sgd_models import trained_bytes
from helpers.ranks.run import Run
from helpers.views.plain import plural

_ROOM_BYTES = 64
"""For what an evaluation sums, after each epoch."""


@dataclass(frozen=True)
class ScriptTrains:
    """What the script's ranks must do together; called with a run, "" or what is wrong first."""

    truth: ScriptTruth
    batches: tuple[tuple[tuple[tuple[int, ...], ...], ...], ...]
    """Of each epoch and rank: the samples of each microbatch."""
    settings: Settings
    tested: int

    def __call__(self, run: Run) -> str:
        values = [value if isinstance(value, dict) else {} for value in run.values]
        training = (
            self._steps,
            self._together,
            self._first,
            self._samples,
            self._mode,
            self._later,
        )
        looks = (*training, self._evaluation, self._history, self._checkpoint)
        return next((problem for look in looks if (problem := look(values))), "")

    @property
    def _per_epoch(self) -> int:
        return len(self.truth.after) // self.settings.epochs

    def _steps(self, values: list[dict[str, Any]]) -> str:
        for rank, value in enumerate(values):
            made, wanted = len(value.get("weights", ())), len(self.truth.after)
            if made != wanted:
                return f"rank {rank} makes {plural(made, 'step')}; {wanted} are right"
        return ""

    def _together(self, values: list[dict[str, Any]]) -> str:
        for step, copies in enumerate(zip(*(v["weights"] for v in values), strict=True), 1):
            if any(apart(copies[0], other) for other in copies[1:]):
                return f"after step {step} the ranks have different weights"
        return ""

    def _first(self, values: list[dict[str, Any]]) -> str:
        if not apart(self.truth.after[0], values[0]["weights"][0]):
            return ""
        before = self.truth.before
        mine, wanted = (w - before for w in (values[0]["weights"][0], self.truth.after[0]))
        k = float(mine @ wanted / (wanted @ wanted))
        if abs(k - 1) > 0.01 and torch.allclose(mine, k * wanted, rtol=1e-3, atol=1e-6):
            return f"step 1 is {k:.3g} times as long as that of one process"
        lengths = [float(moved.norm()) / LR for moved in (mine, wanted)]
        agree = "in step 1 the ranks agree with each other, not with one process"
        if abs(lengths[0] / lengths[1] - 1) < 0.01:
            return f"{agree}: the gradient is {lengths[0]:.3g} long, as it should be, in another direction"
        return (
            f"{agree}: the gradient is {lengths[0]:.3g} long, that of one process {lengths[1]:.3g}; "
            f"the limit is {self.settings.clip:g}"
        )

    def _samples(self, values: list[dict[str, Any]]) -> str:
        for epoch, shares in enumerate(self.batches):
            for rank, value in enumerate(values):
                count = len(shares[rank])
                mine = _sorted(value["batches"][epoch * count : (epoch + 1) * count])
                if mine == _sorted(shares[rank]):
                    continue
                if epoch and mine == _sorted(value["batches"][:count]):
                    return f"in epoch {epoch + 1} rank {rank} goes through the microbatches of epoch 1 again"
                return (
                    f"in epoch {epoch + 1} rank {rank} learns from other samples than its sampler's"
                )
        return ""

    def _mode(self, values: list[dict[str, Any]]) -> str:
        for value in values:
            if False in value["modes"]:
                epoch = value["modes"].index(False) // len(self.batches[0][0]) + 1
                return f"in epoch {epoch} the model learns in evaluation mode: without dropout"
        return ""

    def _later(self, values: list[dict[str, Any]]) -> str:
        for step, (wanted, mine) in enumerate(
            zip(self.truth.after, values[0]["weights"], strict=True), 1
        ):
            if problem := apart(wanted, mine):
                return f"after step {step} the weights {problem}"
        return ""

    def _evaluation(self, values: list[dict[str, Any]]) -> str:
        seen = sum(value["evaluated"] for value in values)
        wanted = self.tested * self.settings.epochs
        if seen == wanted:
            return ""
        each = f"{seen / self.settings.epochs:.3g}"
        return f"an evaluation goes through {each} samples, and the test set has {self.tested}"

    def _history(self, values: list[dict[str, Any]]) -> str:
        for rank, value in enumerate(values):
            if value["history"] is None:
                return f"rank {rank} returns nothing: every rank returns the list of accuracies"
            if problem := difference(list(self.truth.accuracies), value["history"], PARITY):
                return f"the accuracies that rank {rank} returns: {problem}"
        return ""

    def _checkpoint(self, values: list[dict[str, Any]]) -> str:
        writers = [rank for rank, value in enumerate(values) if value["saves"]]
        if len(writers) > 1:
            return f"ranks {', '.join(map(str, writers))} all write the same file"
        if writers != [0]:
            return "rank 0 writes no checkpoint"
        loaded = values[0]["checkpoint"]
        if not isinstance(loaded, torch.Tensor):
            return f"the checkpoint does not load into a plain model: {loaded}"
        problem = apart(self.truth.after[-1], loaded)
        return problem and f"the weights in the checkpoint {problem}"


def _sorted(batches: Any) -> list[list[int]]:
    """Give microbatches as sets of samples: in which order they are in one makes no difference."""
    return [sorted(batch) for batch in batches]


def script_cases(rng: random.Random) -> Iterator[Case]:
    worlds = (
        (2, Settings(batch_size=4, accumulate=2, clip=1e6, epochs=2), 13),
        (3, Settings(batch_size=2, accumulate=3, clip=0.25, epochs=2), 10),
    )
    for ranks, settings, tested in worlds:
        seed, steps = rng.randrange(1000), 2
        count = ranks * settings.batch_size * settings.accumulate * steps
        x, y = draws.digits(rng, count + tested)
        train, test = (x[:count], y[:count]), (x[count:], y[count:])
        truth = trained_by_one(seed, train, test, ranks, settings)
        batches = tuple(
            tuple(
                tuple(tuple(part) for part in share)
                for share in microbatches(train, ranks, settings, e)
            )
            for e in range(settings.epochs)
        )
        clip = "no clipping" if settings.clip > 1 else f"clipped to {settings.clip:g}"
        name = f"checkpoint-{rng.randrange(1 << 30)}.pt"
        yield Case(
            f"{ranks} ranks, {settings.accumulate} microbatches of {settings.batch_size} "
            f"a step, {clip}, {tested} to test",
            ranks,
            [(seed, train, test, name, settings.as_dict())] * ranks,
            judge=ScriptTrains(truth, batches, settings, tested),
            timeout_s=8.0,
        )


def reduced_bytes(case: Case, rank: int) -> int:
    """Give the bytes that all_reduces need: the gradients once a step, and a few for evaluations."""
    settings, train = case.inputs[rank][4], case.inputs[rank][1]
    taken = case.world_size * settings["batch_size"] * settings["accumulate"]
    steps = settings["epochs"] * len(train[0]) // taken
    gradients = trained_bytes(classifier_with_dropout(0))
    return int(steps * gradients + settings["epochs"] * _ROOM_BYTES)
