"""23.3 Eight bugs (30 min, ●●●●○)

- Let the check lead you: it names one effect at a time. Ask for each line of the script: on which ranks does
  it run, how often, and on whose data?
- One collective is under `if rank == 0`. Look at the three lines around backward: which microbatch is the
  last, how large is its loss, when is the gradient complete? And what does an epoch need at its beginning?
- last = (i + 1) % accumulate == 0; loss / accumulate; clip once, before the step; at the top of an epoch
  sampler.set_epoch(epoch) and model.train(); test on Subset(test, range(rank, len(test), world_size));
  all_reduce and append on every rank; save on rank 0 only.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn
from torch.nn.functional import cross_entropy
from torch.utils.data import DistributedSampler

from helpers.checks.author import *
from helpers.exercises.nb23_capstone.in_ranks import (
    CLASSES,
    PIXELS,
    Samples,
    classifier_with_dropout,
    copy_weights,
    run_script,
)

LR, MOMENTUM, TOLERANCE = 0.1, 0.9, 1e-6
NO_CLIP = 1e6
Batches = list[list[list[int]]]
"""The samples of each microbatch of each rank in an epoch."""
ONE_STEP_ADVICE = (
    "A step must do what one process does with the whole batch: take the mean of the losses of all "
    "microbatches of all ranks (notebook 08), clip the gradient once, after the last backward, and clear it "
    "after the step."
)


@dataclass(frozen=True)
class Script:
    """The script's settings and data, and what its ranks must do together."""

    seed: int
    train: Samples
    test: Samples
    ranks: int
    batch_size: int
    accumulate: int
    clip: float
    epochs: int

    def batches(self, epoch: int) -> Batches:
        found = []
        for rank in range(self.ranks):
            data: Any = range(len(self.train[0]))
            sampler: Any = DistributedSampler(data, self.ranks, rank)
            sampler.set_epoch(epoch)
            own, size = list(sampler), self.batch_size
            found.append([own[i : i + size] for i in range(0, len(own), size)])
        return found

    def problem(self, values: list[Any]) -> Finding | None:
        """Return the first problem. The most basic ones come first."""
        return next(self.problems(values), None)

    def problems(self, values: list[Any]) -> Iterator[Finding]:
        after, accuracies = train_in_one_process(self)
        for rank, value in enumerate(values):
            if len(value["weights"]) != len(after):
                made = plural(len(value["weights"]), "step")
                yield Finding(f"rank {rank} makes {made}; expected: {len(after)}", STEPS_ADVICE)
        mine = values[0]["weights"]
        for step, copies in enumerate(zip(*(v["weights"] for v in values), strict=False), 1):
            if any(describe_distance(copies[0], other) for other in copies[1:]):
                yield Finding(f"after step {step} the ranks have different weights", AVERAGE_ADVICE)
        if far := describe_distance(after[0], mine[0]):
            what = f"after step 1 the ranks have the same weights, but they {far}"
            yield Finding(what, ONE_STEP_ADVICE)
        yield from self.samples(values)
        for value in values:
            if value["without dropout"] != []:
                epoch = value["without dropout"][0] // len(self.batches(0)[0]) + 1
                what = f"in epoch {epoch} the model learns in evaluation mode: without dropout"
                yield Finding(what, MODE_ADVICE)
        for step, (wanted, got) in enumerate(zip(after, mine, strict=False), 1):
            if far := describe_distance(wanted, got):
                yield Finding(f"after step {step} the weights {far}", ONE_STEP_ADVICE)
        seen, tests = sum(value["evaluated"] for value in values), len(self.test[0])
        if seen != tests * self.epochs:
            each = f"{seen / self.epochs:.3g}"
            yield Finding(
                f"an evaluation goes through {each} samples, and the test set has {tests}",
                TEST_ONCE_ADVICE,
            )
        for rank, value in enumerate(values):
            if value["history"] is None:
                yield Finding(f"rank {rank} returns nothing", ACCURACY_ADVICE)
            elif problem := difference(accuracies, value["history"], TOLERANCE):
                yield Finding(
                    f"the accuracies that rank {rank} returns: {problem}", ACCURACY_ADVICE
                )
        writers = [rank for rank, value in enumerate(values) if value["saves"]]
        loaded = values[0]["checkpoint"]
        if len(writers) > 1:
            listed = ", ".join(map(str, writers))
            yield Finding(f"ranks {listed} all write the same file", WRITER_ADVICE)
        elif writers != [0]:
            yield Finding("rank 0 writes no checkpoint", SAVE_ADVICE)
        elif not isinstance(loaded, torch.Tensor):
            yield Finding(
                f"the checkpoint does not load into a plain model: {loaded}", PLAIN_MODEL_ADVICE
            )
        elif far := describe_distance(after[-1], loaded):
            yield Finding(f"the weights in the checkpoint {far}", SAVE_ADVICE)

    def samples(self, values: list[Any]) -> Iterator[Finding]:
        """Yield a message for each rank whose microbatches are not those of its sampler."""
        for epoch in range(self.epochs):
            for rank, share in enumerate(self.batches(epoch)):
                count, learned = len(share), values[rank]["batches"]
                mine = sort_samples(learned[epoch * count : (epoch + 1) * count])
                if mine == sort_samples(share):
                    continue
                where = f"in epoch {epoch + 1} rank {rank}"
                if epoch and mine == sort_samples(learned[:count]):
                    yield Finding(
                        f"{where} goes through the microbatches of epoch 1 again", ORDER_ADVICE
                    )
                yield Finding(
                    f"{where} learns from other samples than its sampler's", SAMPLER_ADVICE
                )


def train_in_one_process(script: Script) -> tuple[list[torch.Tensor], list[float]]:
    """Train in one process: the weights after every step, the accuracy after every epoch."""
    model = classifier_with_dropout(script.seed)
    optimizer = torch.optim.SGD(model.parameters(), lr=LR, momentum=MOMENTUM)
    after, accuracies = [], []
    for epoch in range(script.epochs):
        model.train()
        shares = script.batches(epoch)
        for i in range(len(shares[0])):
            together = [k for share in shares for k in share[i]]
            loss = cross_entropy(model(script.train[0][together]), script.train[1][together])
            (loss / script.accumulate).backward()
            if (i + 1) % script.accumulate == 0:
                nn.utils.clip_grad_norm_(model.parameters(), script.clip)
                optimizer.step()
                optimizer.zero_grad()
                after.append(copy_weights(model))
        model.eval()
        with torch.no_grad():
            right = model(script.test[0]).argmax(1) == script.test[1]
        accuracies.append(right.double().mean().item())
    return after, accuracies


STEPS_ADVICE = "Make one optimizer step for each `accumulate` microbatches."
AVERAGE_ADVICE = (
    "The ranks have different weights: their gradients were not averaged, or not all of them. With DDP "
    "the backward of the last microbatch must average them (notebook 09)."
)
ORDER_ADVICE = (
    "Every epoch has the same order. A sampler that shuffles needs the epoch's number (notebook "
    "07)."
)
SAMPLER_ADVICE = (
    "A rank must learn from the samples that its sampler gives it, batch_size of them in a "
    "microbatch."
)
MODE_ADVICE = (
    "The model learns in evaluation mode. `model.eval()` stays in force until `model.train()` is called, "
    "which each epoch needs."
)
TEST_ONCE_ADVICE = (
    "Each test sample must count once, over all ranks together. A DistributedSampler pads the shares to "
    "equal lengths, or drops what is left over (notebook 07)."
)
ACCURACY_ADVICE = (
    "Every rank must return the accuracy over all ranks: right answers of all ranks divided by test "
    "samples of all ranks."
)
WRITER_ADVICE = "Several ranks write the same file. All have the same weights: let rank 0 write it."
PLAIN_MODEL_ADVICE = (
    "The checkpoint has DDP's names. Save `model.state_dict()`: `model` is the plain model."
)
SAVE_ADVICE = "Rank 0 saves `model.state_dict()` to `path` after every epoch."


def describe_distance(wanted: torch.Tensor, got: Any) -> str:
    """Return how far weights are from those of one process, or "" if they are within the tolerance."""
    if not isinstance(got, torch.Tensor) or got.shape != wanted.shape:
        return "are not those of the model"
    far = float((got.double() - wanted).abs().max())
    return "" if far <= TOLERANCE else f"are {far:.1g} from one process's; {TOLERANCE:g} is allowed"


def sort_samples(batches: Any) -> list[list[int]]:
    """Sort the samples of each microbatch, because their order within it makes no difference."""
    return [sorted(batch) for batch in batches]


def case(draw: Draw) -> Case:
    n, batch_size, accumulate = draw.ranks, draw.whole(1, 3), draw.of(2, 3, 2, 1)
    clip, epochs = draw.of(NO_CLIP, 0.1), draw.of(2, 2, 3, 1)
    count, tested = n * batch_size * accumulate * draw.whole(1, 2), draw.whole(n, 4 * n)
    x = torch.randn(count + tested, PIXELS, generator=draw.generator(), dtype=torch.float64)
    y = torch.randint(CLASSES, (count + tested,), generator=draw.generator())
    train, test, seed = (x[:count], y[:count]), (x[count:], y[count:]), draw.whole(0, 999)
    script = Script(seed, train, test, n, batch_size, accumulate, clip, epochs)
    settings = (batch_size, accumulate, clip, epochs)
    said = "no clipping" if clip == NO_CLIP else f"clipped to {clip:g}"
    gradients = copy_weights(classifier_with_dropout(0)).nbytes
    given = (seed, train, test, f"checkpoint-{draw.whole(0, 1 << 30)}.pt", settings)
    return Case(
        f"{epochs} epoch{'s' * (epochs > 1)}, {plural(accumulate, 'microbatch')} of {batch_size} a "
        f"step, {said}, {tested} to test",
        [given] * n,
        right=AllRanks(lambda got: None, script.problem),
        like={},
        facts={"bytes": epochs * (count // (n * batch_size * accumulate) * gradients + 64)},
        seconds=20.0,
    )


EXERCISE = Exercise(
    case,
    (
        Calls(
            "all_reduce",
            total_bytes="bytes",
            text="gradients are averaged once in each step",
            why="Gradients are averaged once in each step, with its last microbatch. DDP decides in the "
            "forward: for the other microbatches `ddp(x)` must be inside no_sync(), too, not backward alone "
            "(notebook 09).",
        ),
    ),
    failed=(
        CrashAdvice(
            "closed by peer|Connection",
            "A rank has ended while another was in a call with it. All ranks must make the same calls.",
        ),
    ),
    kind=Kind.MODULE,
    driver=run_script,
    reported=("batches", "without dropout", "evaluated", "saves"),
    points=20,
    sizes=(2, 3, 4),
    count=12,
)
