"""23.3 Eight bugs of a language-model trainer (35 min, ●●●●○)

- Let the check guide you, because it reports one effect at a time. For each line, ask which ranks have the
  same samples, which have the same weights, and by which numbers the gradients have already been divided.
- Two of the wrapping steps are incomplete. Two lines use the rank or the world size, but need a coordinate or
  the size of one dimension. Two numbers must be computed over all ranks: the number of targets and the norm.
- sampler: data.size(), data.get_local_rank(). flag: device=device. After TABLES_PLAN: model.head.weight =
  model.table.weight. checkpoint_wrapper(block) without the option. fully_shard(model, ...) last. loss:
  reduction "sum", times data.size(), divided by all targets along data. experts: p.grad /= data.size(). norm:
  the squares of p.grad.full_tensor(), and the squares of the experts' gradients, summed along data.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import torch
from torch.nn.functional import cross_entropy
from torch.utils.data import DistributedSampler

from helpers.checks.author import *
from helpers.exercises.nb23_capstone.in_ranks.bugs import ExpertModel, router_seed, run_bugs
from helpers.exercises.nb23_capstone.in_ranks.trainer import END, count_targets, inputs_and_targets

LR, TOLERANCE, NO_LIMIT = 0.1, 1e-7, 1e6
SIZES = {2: ((2, 1), (1, 2)), 4: ((2, 2), (2, 2), (4, 1))}
Named = dict[str, torch.Tensor]


@dataclass(frozen=True)
class Script:
    """The script's settings and data, and the required results of its ranks together."""

    seed: int
    sizes: tuple[int, int]
    windows: torch.Tensor
    batch_size: int
    accumulate: int
    limit: float
    steps: int

    @cached_property
    def in_one_process(self) -> tuple[list[Named], tuple[Named, float]]:
        """The result of `train_in_one_process`."""
        return train_in_one_process(self)

    def parts(self, coordinate: int) -> list[list[int]]:
        """Return the windows of each of a data coordinate's microbatches, in order."""
        data: Any = self.windows
        order: list[int] = list(DistributedSampler(data, self.sizes[0], coordinate))
        count, size = self.steps * self.accumulate, self.batch_size
        return [order[i * size : (i + 1) * size] for i in range(count)]

    def problem(self, values: list[Any]) -> Finding | None:
        """Return the first problem, searching for the most basic problems first."""
        return next(self.problems(values), None)

    def problems(self, values: list[Any]) -> Iterator[Finding]:
        yield from self.wrong_samples(values)
        for rank, value in enumerate(values):
            if value["hosted"]:
                what = (
                    f"rank {rank} passes a tensor created without `device=device` to "
                    f"{value['hosted'][0]}"
                )
                yield Finding(what, HOSTED_ADVICE)
        for rank, value in enumerate(values):
            if value["made"] != self.steps:
                what = f"rank {rank} returns {value['made']} instead of {self.steps}, the number of steps"
                yield Finding(what, STEPS_ADVICE)
            if len(value["weights"]) != self.steps:
                what = f"rank {rank} takes {plural(len(value['weights']), 'step')} instead of {self.steps}"
                yield Finding(what, STEPS_ADVICE)
        yield from self.diverging(values)
        if not values[0]["tied"]:
            yield Finding("`model.head.weight` is no longer `model.table.weight`", TIED_ADVICE)
        yield from self.other_routes(values)
        yield from self.wrong_gradients(values)
        after, _ = self.in_one_process
        for step, wanted in enumerate(after):
            for rank, value in enumerate(values):
                for name, weight in wanted.items():
                    own = weight[rank // self.sizes[1]][None] if "experts" in name else weight
                    if not same(own, value["weights"][step].get(name), TOLERANCE):
                        what = (
                            f"after step {step + 1}, {name} of rank {rank} differs from that of one "
                            "process"
                        )
                        yield Finding(what, ONE_STEP_ADVICE)

    def wrong_samples(self, values: list[Any]) -> Iterator[Finding]:
        data, tensor = self.sizes
        for rank, value in enumerate(values):
            wanted = self.parts(rank // tensor)
            learned = [sorted(part) for part in value["learned"]]
            if learned == [sorted(part) for part in wanted]:
                continue
            neighbor = rank // tensor * tensor + (rank + 1) % tensor
            if tensor > 1 and values[neighbor]["learned"] != value["learned"]:
                what = (
                    f"ranks {rank} and {neighbor} of one tensor group learn from different windows"
                )
                yield Finding(what, SAMPLER_ADVICE)
            elif len(learned) != len(wanted):
                learned_from = plural(len(learned), "microbatch")
                what = f"rank {rank} learns from {learned_from} instead of {len(wanted)}"
                yield Finding(what, STEPS_ADVICE)
            else:
                what = f"rank {rank} does not learn from the windows of its data coordinate"
                yield Finding(what, OTHER_SAMPLES_ADVICE)

    def diverging(self, values: list[Any]) -> Iterator[Finding]:
        """Yield a weight that should be equal on the ranks of one data group, but differs after step 1."""
        for rank, value in enumerate(values):
            first = rank % self.sizes[1]
            for name, weight in value["weights"][0].items():
                if "experts" not in name and not same(
                    values[first]["weights"][0].get(name), weight, TOLERANCE
                ):
                    what = f"after step 1, {name} differs between ranks {first} and {rank}"
                    inside = name.startswith("blocks.")
                    yield Finding(what, BLOCKS_ADVICE if inside else ROOT_ADVICE)

    def other_routes(self, values: list[Any]) -> Iterator[Finding]:
        """Yield the number of tokens that took a different route in backward than in forward."""
        for rank, value in enumerate(values):
            for block, choices in enumerate(value["choices"]):
                runs = self.steps * self.accumulate
                if len(choices) == runs:
                    what = f"on rank {rank}, block {block} is not recomputed in backward"
                    yield Finding(what, RECOMPUTED_ADVICE)
                    return
                pairs = list(zip(choices[::2], choices[1::2], strict=False))
                moved = sum(a != b for x, y in pairs for a, b in zip(x, y, strict=False))
                total = sum(len(x) for x, _ in pairs)
                if moved:
                    what = (
                        f"on rank {rank}, in block {block}, the recomputed router sends {moved} of {total} "
                        "tokens to different experts than in forward"
                    )
                    yield Finding(what, ROUTER_ADVICE)
                    return

    def wrong_gradients(self, values: list[Any]) -> Iterator[Finding]:
        """Yield the problems with the gradients of step 1, regardless of the factors used by the ranks."""
        _, (right, norm) = self.in_one_process
        wanted = min(1.0, self.limit / (norm + 1e-6))
        scales: set[float] = set()
        for name, grad in right.items():
            if "experts" in name:
                continue
            got = values[0]["grads"][0].get(name)
            if got is None or got.shape != grad.shape:
                yield Finding(f"in step 1, {name} has no gradient", ONE_STEP_ADVICE)
                return
            scales |= ratios(got, grad)
        # each rank may have scaled its part by another number; more of them is another loss
        if len(scales) > len(values):
            mean = train_in_one_process(self, of_means=True)[1][0]
            of_means = {
                r
                for n, g in mean.items()
                if "experts" not in n
                for r in ratios(values[0]["grads"][0][n], g)
            }
            what = "in step 1, the gradients are not those of the mean loss over all ranks' targets"
            yield Finding(what, MEANS_ADVICE if len(of_means) <= len(values) else LOSS_ADVICE)
            return
        tensor = self.sizes[1]
        for rank, value in enumerate(values):
            for name, grad in right.items():
                if "experts" not in name:
                    continue
                own = ratios(value["grads"][0][name], grad[rank // tensor : rank // tensor + 1])
                if len(own) > 1:
                    yield Finding(
                        f"in step 1, {name} of rank {rank} has a different gradient", EXPERTS_ADVICE
                    )
                    return
                if own and not any(abs(r - s) < 1e-5 * s for r in own for s in scales):
                    factor = next(iter(own)) / min(scales, key=lambda s: abs(s - wanted))
                    what = (
                        f"in step 1, rank {rank}'s gradient of {name} is {factor:.3g} times that of "
                        f"one process"
                    )
                    if len(scales) > 1:
                        what = (
                            f"in step 1, rank {rank}'s gradient of {name} is scaled differently from all "
                            f"others"
                        )
                    yield Finding(what, EXPERTS_ADVICE)
                    return
        if len(scales) > 1:
            listed = ", ".join(f"{s:.3g}" for s in sorted(scales))
            what = f"in step 1, the ranks scale their parts of the gradients by different factors: {listed}"
            yield Finding(what, CLIP_ADVICE)
        elif scales and abs(next(iter(scales)) - wanted) > 1e-5 * wanted:
            what = (
                f"in step 1, the gradients are {next(iter(scales)):.4g} times those of one "
                f"process before "
            )
            what += (
                f"clipping, instead of {wanted:.4g} times (norm {norm:.4g}, limit {self.limit:.4g})"
            )
            yield Finding(what, SCALE_ADVICE)


def ratios(got: torch.Tensor, wanted: torch.Tensor) -> set[float]:
    """Return the distinct ratios of elements, to six digits, where the expected element is large enough."""
    large = wanted.abs() > 1e-4 * wanted.abs().max()
    found = (got[large] / wanted[large]).tolist()
    kept: list[float] = []
    for ratio in found:
        if not any(abs(ratio - other) <= 1e-5 * abs(other) for other in kept):
            kept.append(ratio)
    return {float(f"{ratio:.6g}") for ratio in kept}


def train_in_one_process(
    script: Script, of_means: bool = False
) -> tuple[list[Named], tuple[Named, float]]:
    """Train in one process; return each step's weights, and step 1's gradients before clipping and norm.

    of_means: whether to use the mean of the microbatches' means instead of the mean over all targets.
    """
    dtype, state = torch.get_default_dtype(), torch.get_rng_state()
    torch.set_default_dtype(torch.float64)
    data = script.sizes[0]
    try:
        model = ExpertModel(script.seed, data)
        optimizer = torch.optim.SGD(model.parameters(), lr=LR)
        shares = [script.parts(d) for d in range(data)]
        after, first, first_norm = [], {}, 0.0
        for step in range(script.steps):
            mine = slice(step * script.accumulate, (step + 1) * script.accumulate)
            parts = [[script.windows[p] for p in share[mine]] for share in shares]
            total = sum(count_targets(part) for own in parts for part in own)
            for d, own in enumerate(parts):
                for k, part in enumerate(own, step * script.accumulate):
                    torch.manual_seed(router_seed(script.seed, d, k))
                    divisor = count_targets(part) * len(own) * data if of_means else total
                    inputs, targets = inputs_and_targets(part)
                    loss = cross_entropy(
                        model(inputs), targets.flatten(), ignore_index=-100, reduction="sum"
                    )
                    (loss / max(divisor, 1)).backward()
            grads = {n: p.grad.clone() for n, p in model.named_parameters() if p.grad is not None}
            norm = float(torch.nn.utils.clip_grad_norm_(model.parameters(), script.limit))
            if not step:
                first, first_norm = grads, norm
            optimizer.step()
            optimizer.zero_grad()
            after.append({n: p.detach().clone() for n, p in model.named_parameters()})
    finally:
        torch.set_default_dtype(dtype)
        torch.set_rng_state(state)
    return after, (first, first_norm)


SAMPLER_ADVICE = (
    "The ranks of one tensor group get different windows. They compute parts of the same product, so they "
    "need the same ones. Pass the sampler the size of the data dimension and this rank's place in it."
)
OTHER_SAMPLES_ADVICE = (
    "Take a step's windows in the order in which `DistributedSampler` returns them for this data "
    "coordinate, `batch_size` for each microbatch."
)
HOSTED_ADVICE = (
    "This tensor is in the CPU's memory. gloo accepts it, so nothing happens here, but on GPUs NCCL "
    "raises an error for a CPU tensor. Create each tensor for a collective with `device=device`."
)
STEPS_ADVICE = (
    "Take one optimizer step for every `accumulate` microbatches, until `steps` are taken or a rank is "
    "interrupted. Return the number of steps taken."
)
ROOT_ADVICE = (
    "This weight is outside the blocks, so no wrapper averages its gradient. Call `fully_shard` for the "
    "model as well, after its blocks (notebook 12)."
)
BLOCKS_ADVICE = (
    "The ranks have different weights, because their gradients were not averaged. Call `fully_shard` for "
    "each block, along data."
)
TIED_ADVICE = (
    "Your model has two weights instead of one, with two gradients, because `parallelize_module` puts a "
    "new parameter into each module. Tie them again before `fully_shard`, which then shards one weight."
)
RECOMPUTED_ADVICE = "You don't recompute each block in backward, as the original script does."
ROUTER_ADVICE = (
    "The router draws random numbers, and backward draws new ones, so gradients go to unused experts. The "
    "recomputation must start from forward's random state, which the wrapper restores by default."
)
MEANS_ADVICE = (
    "Your loss is a mean of the microbatches' means, so a target counts more if its microbatch has few "
    "targets (notebook 08). Divide the sum of losses by the targets of all microbatches along data."
)
LOSS_ADVICE = (
    "The loss of a step is the sum of all losses of all data ranks' microbatches, divided by the number "
    "of their targets."
)
EXPERTS_ADVICE = (
    "An expert gets the tokens of all data ranks, so its gradient is already the sum over these ranks' "
    "losses. `fully_shard` divides all other gradients by the number of data ranks, so divide the experts' "
    "gradients by the same number (notebook 17)."
)
CLIP_ADVICE = (
    "Each rank computes the norm of only its own shards. Use the norm over all gradients: the whole "
    "gradients of sharded parameters, and those of the experts on all data ranks."
)
SCALE_ADVICE = (
    "All gradients are scaled by the same wrong factor. There are three places to look: `fully_shard` "
    "averages over the data ranks, the loss is divided by the targets of all data ranks, and clipping scales "
    "by limit / norm. The norm counts each expert once, and each whole gradient once."
)
ONE_STEP_ADVICE = (
    "A step must have the same result as in one process that gets all windows of the step: compute the "
    "gradient of the mean over all targets, clip it once, and clear it after the step."
)


def case(draw: Draw) -> Case:
    sizes = draw.of(*SIZES[draw.ranks])
    n, batch_size, accumulate, steps = draw.ranks, draw.whole(1, 2), draw.of(2, 2, 1), 2
    generator = draw.generator()
    count = n * batch_size * accumulate * (steps + 1)
    drawn = torch.randint(1, 8, (count, 9), generator=generator)
    ends = (
        torch.rand(count, 1, generator=generator) * 0.7
    )  # windows differ in their number of targets
    windows = drawn.where(torch.rand(drawn.shape, generator=generator) > ends, END)
    for digit in range(3):  # so that no two windows are alike, and each has targets
        windows[:, digit] = torch.arange(count) // 7**digit % 7 + 1
    limit = draw.of(NO_LIMIT, 0.05, 0.05)
    stop = (draw.rank(), draw.of(99, steps - 1))
    settings = (batch_size, accumulate, limit, steps if stop[1] == 99 else steps + 1)
    script = Script(draw.whole(0, 999), sizes, windows, batch_size, accumulate, limit, steps)
    said = "no clipping" if limit == NO_LIMIT else f"clipped to {limit:g}"
    ends_with = f", rank {stop[0]} interrupted in the last step" if stop[1] != 99 else ""
    return Case(
        f"data {sizes[0]}, tensor {sizes[1]}: {plural(steps, 'step')} of "
        f"{plural(accumulate, 'microbatch')} of {batch_size}, {said}{ends_with}",
        [(script.seed, sizes, windows, settings, stop)] * n,
        right=AllRanks(lambda got: None, script.problem),
        like={},
        seconds=30.0,
    )


EXERCISE = Exercise(
    case,
    kind=Kind.MODULE,
    driver=run_bugs,
    reported=("learned", "hosted", "choices"),
    sizes=(2, 4, 4),
    count=12,
    points=20,
)
