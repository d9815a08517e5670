"""22.4 Learn from stale samples (25 min, ●●●●○)

- Begin with the loss of one token. Which two ratios does it need, and which of them depends on `new`? Then
  think about the mean: the trainers' gradients are averaged, so by which number do you need to divide a sum
  over this rank's tokens, and by which number do you need to multiply it?
- Before computing anything, select the tokens that count: `new[mask]` has one dimension, and padding in `new`
  then gets a gradient of 0. `advantages[:, None].expand_as(new)[mask]` selects the same tokens. The ratio is
  exp(new - old), and the weight is exp(old - sampled), at most `cap`.
- loss = -weight * torch.minimum(ratio * own, ratio.clamp(1 - low, 1 + high) * own); tokens = mask.sum();
  dist.all_reduce(tokens, group=group); return loss.sum() * dist.get_world_size(group) / tokens.
"""

import torch

from helpers.checks.author import *
from helpers.exercises.nb22_launchers_and_backends.in_ranks.policy import Batch, run_policy_loss

MIN_DISTANCE = 0.005
"""The minimum distance of a ratio from the bounds of its clipping, at which the gradient jumps."""
ADVICE = {
    "gradient of new": "Take one token. Its gradient is -weight * advantage * ratio, or 0 if the clipping "
    "removes it, times the number of trainers, divided by the number of tokens that count on all trainers.",
    "loss": "The gradients are right, so compare the value with the formula: the sum over this rank's "
    "tokens, times the number of trainers, divided by the number of tokens that count on all of them.",
}
KINDS = (
    "stale",
    "stale",
    "stale",
    "stale",
    "on-policy",
    "one step old",
    "same weights, two dtypes",
)


def case(draw: Draw) -> Case:
    n, generator = draw.ranks, draw.generator()
    trainers = draw.of(*range(1, n), n - 1)
    kind = draw.of(*KINDS)
    low, high, cap = draw.of(0.2, 0.1), draw.of(0.28, 0.2), draw.of(2.0, 1.5, 5.0)
    padding = draw.of("padding is NaN", "padding is 0", "padding is any number")
    empty = draw.of(None, draw.whole(0, trainers - 1)) if trainers > 1 else None
    batches = []
    for rank in range(trainers):
        samples = draw.whole(1, 4)
        length = draw.of(samples, samples + 1, draw.whole(2, 6))
        shape = (samples, length)
        mask = draw_mask(draw, shape)
        mask[0, -1] = True
        mask &= rank != empty
        new, old, sampled = draw_log_probs(shape, kind, (low, high), generator)
        advantages = torch.randn(samples, generator=generator, dtype=torch.float64)
        if draw.of(False, False, True):
            advantages[0] = 0.0
        fill = {"padding is NaN": torch.nan, "padding is 0": 0.0}.get(padding)
        for tensor in (new, old, sampled):
            noise = -4 * torch.rand(shape, generator=generator, dtype=torch.float64)
            tensor[~mask] = noise[~mask] if fill is None else fill
        batches.append((new, old, sampled, advantages, mask))
    total = sum(int(mask.sum()) for *_, mask in batches)
    given = [
        Batch(
            new.float(),
            old.float(),
            sampled.bfloat16(),
            advantages.float(),
            mask,
            low,
            high,
            cap,
        )
        for new, old, sampled, advantages, mask in batches
    ]
    right = [right_parts(batch, trainers, total) for batch in given]
    counts = [int(batch.mask.sum()) for batch in given]
    sizes = torch.cat([token_sizes(batch) for batch in given]) * trainers / total
    scale = {"gradient of new": 8 * largest(sizes), "loss": 8 * float(sizes.sum())}
    return Case(
        f"{plural(trainers, 'trainer')} of {n} ranks, {', '.join(map(str, counts))} tokens, {kind}, "
        f"{padding}",
        [(trainers, given[rank] if rank < trainers else None) for rank in range(n)],
        right=NamedParts([*right, *[{}] * (n - trainers)], scale, ADVICE),
        facts={
            "trainers": trainers,
            "counts": ", ".join(map(str, counts)),
            "total": total,
            "empty": empty,
            "n": n,
        },
        shown="new, old, sampled, advantages, mask, low, high, cap, group",
        telling=kind == "stale" and len(set(counts)) > 1,
    )


def draw_mask(draw: Draw, shape: tuple[int, int]) -> torch.Tensor:
    """Draw the tokens that count: in each sample, a stretch after a prompt and before padding."""
    mask = torch.zeros(shape, dtype=torch.bool)
    for row in mask:
        start = draw.whole(0, 1)
        row[start : draw.whole(start, shape[1])] = True
    return mask


def draw_log_probs(
    shape: tuple[int, int], kind: str, bounds: tuple[float, float], generator: torch.Generator
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Draw (new, old, sampled) in float64. The generator's numbers can be represented in bfloat16."""

    def random() -> torch.Tensor:
        return torch.randn(shape, generator=generator, dtype=torch.float64)

    sampled = (-0.2 - 3 * torch.rand(shape, generator=generator, dtype=torch.float64)).bfloat16()
    gap = {"stale": 0.7, "one step old": 0.3, "on-policy": 0.0}.get(kind, 0.01)
    old = (sampled.double() + gap * random()).clamp(max=-1e-3)
    new = old.clone()
    if kind == "stale":
        new = (old + 0.35 * random()).clamp(max=-1e-3)
    for bound in (1 - bounds[0], 1 + bounds[1]):
        near = ((new - old).exp() - bound).abs() < MIN_DISTANCE
        new = torch.where(near, new - 4 * MIN_DISTANCE, new)
    return new, old, sampled.double()


def token_sizes(batch: Batch) -> torch.Tensor:
    """Return the size of each token's loss without clipping, relative to which errors are measured."""
    new, old, sampled = (x.double()[batch.mask] for x in batch[:3])
    own = batch.advantages.double()[:, None].expand_as(batch.new)[batch.mask]
    return own.abs() * (new - old).exp().clamp(min=1) * (old - sampled).exp().clamp(max=batch.cap)


def right_parts(batch: Batch, trainers: int, total: int) -> dict[str, torch.Tensor | str]:
    """Return the loss and its gradient, token by token, without autograd."""
    new, old, sampled = (x.double()[batch.mask] for x in batch[:3])
    own = batch.advantages.double()[:, None].expand_as(batch.new)[batch.mask]
    ratio, weight = (new - old).exp(), (old - sampled).exp().clamp(max=batch.cap)
    within = ((own > 0) & (ratio < 1 + batch.high)) | ((own < 0) & (ratio > 1 - batch.low))
    limited = torch.minimum(ratio * own, ratio.clamp(1 - batch.low, 1 + batch.high) * own)
    factor = trainers / total
    grad = torch.zeros_like(batch.new)
    grad[batch.mask] = (-factor * weight * own * ratio * within).float()
    loss = (-factor * weight * limited).sum().float()
    return {"inputs": "", "gradient of new": grad, "loss": loss}


EXERCISE = Exercise(
    case,
    (
        OnlyCalls(("all_reduce",)),
        Calls("all_reduce", most=1, why="A trainer only needs the total number of tokens."),
        Calls("all_reduce", bytes_per_call=8, text="a single number is summed"),
        WaitsForAll(),
    ),
    failed=(
        CrashAdvice(
            "does not require grad",
            "The loss has no gradient. It must depend on `new`, so detach only the factors that don't depend "
            "on `new`.",
        ),
        CrashAdvice(
            "must match the size of tensor",
            "There is one advantage for each sample, but one log-probability for each token. Use "
            "`advantages[:, None]`, which has one row for each sample.",
        ),
        HangAdvice(
            "Only the trainers call this function, and each of them must call `all_reduce` once, with "
            "`group=group`. Without the group, the call waits for the generators, which never make it."
        ),
    ),
    kind=Kind.MODULE,
    driver=run_policy_loss,
    reported=("inputs",),
    sizes=(2, 3, 3, 4, 5, 6),
)
