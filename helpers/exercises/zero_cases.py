"""The worlds on which answers of notebook 11 are tried, what is right in each, and how much travels."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from functools import cache
from itertools import pairwise
from typing import Any

import torch
from torch.nn.functional import mse_loss

from helpers.exercises import draws
from helpers.exercises.look_at_zero import SteppedAs
from helpers.exercises.look_at_zero_layers import LayersAre
from helpers.exercises.look_at_zero_more import FullWeightsAre, ShardIs
from helpers.exercises.model import Case
from helpers.exercises.sgd_models import classifier
from helpers.exercises.sgd_truth import batch_grads
from helpers.exercises.zero_programmes import DOUBLE, share, whole_weights
from helpers.exercises.zero_truth import stepped, trained
from helpers.trace.events import Trace

SLACK = 16
"""Elements: room for counters, and for who rounds each parameter's share up."""


RANDOM_STATE = 640
"""Elements: as many bytes as the state of torch's generator has."""


@cache
def model_size() -> int:
    return sum(p.numel() for p in classifier(0).parameters())


@cache
def tensor_count() -> int:
    return len(list(classifier(0).parameters()))


# --- ZeRO-1 ----------------------------------------------------------------------------------------


def optimizer_cases(rng: random.Random) -> Iterator[Case]:
    worlds: tuple[tuple[int, str, dict[str, Any], int], ...] = (
        (4, "SGD", {"lr": 0.2, "momentum": 0.9}, 1),
        (3, "Adam", {"lr": 0.02}, 2),
        (2, "AdamW", {"lr": 0.01, "weight_decay": 0.1}, 2),
    )
    for world_size, name, options, states in worlds:
        seed = rng.randrange(1000)
        batches = [draws.digits(rng, 12) for _ in range(3)]
        own = share(model_size(), world_size)
        wanted = SteppedAs(tuple(stepped(batches, seed, name, options)), states, own, SLACK)
        yield Case(
            f"{world_size} ranks, {name}, {len(batches)} steps",
            world_size,
            [(batches, seed, name, options, wanted.most)] * world_size,
            [wanted] * world_size,
        )


def share_bytes(case: Case, rank: int) -> int:
    return DOUBLE * (share(model_size(), case.world_size) + SLACK)


def steps_bytes(case: Case, rank: int) -> int:
    """Allow a broadcast of each share to count once a step, as handed in by every rank."""
    return len(case.inputs[rank][0]) * case.world_size * share_bytes(case, rank)


def steps_calls(case: Case, rank: int) -> int:
    return len(case.inputs[rank][0]) * case.world_size * tensor_count()


# --- ZeRO-2 ----------------------------------------------------------------------------------------


def scatter_cases(rng: random.Random) -> Iterator[Case]:
    for world_size, dtype in ((3, torch.float64), (2, torch.float32), (4, torch.float64)):
        seed, each = rng.randrange(1000), 5
        x, y = draws.digits(rng, world_size * each)
        mean = torch.cat([g.flatten() for g in batch_grads(x, y, seed).values() if g is not None])
        own = share(model_size(), world_size)
        padded = torch.nn.functional.pad(mean, (0, own * world_size - len(mean)))
        yield Case(
            f"{world_size} ranks, {str(dtype).removeprefix('torch.')}",
            world_size,
            [
                (xs.to(dtype), ys, seed, own + SLACK)
                for xs, ys in zip(x.split(each), y.split(each), strict=True)
            ],
            [ShardIs(padded.to(dtype), rank, own) for rank in range(world_size)],
        )


def gradient_bytes(case: Case, rank: int) -> int:
    x: torch.Tensor = case.inputs[rank][0]
    return x.element_size() * share(model_size(), case.world_size) * case.world_size


# --- ZeRO-3 ----------------------------------------------------------------------------------------


def layer_cases(rng: random.Random) -> Iterator[Case]:
    for world_size, widths in ((2, (64, 61, 70, 64)), (3, (64, 70, 61)), (4, (60, 81, 65))):
        seed, each, lr, steps = rng.randrange(1000), 1, 0.5, 2
        generator = torch.Generator().manual_seed(rng.randrange(1 << 31))
        xs = torch.randn(world_size * each, widths[0], generator=generator).double().split(each)
        ys = torch.rand(world_size * each, widths[-1], generator=generator).double().split(each)
        truth = _trained(xs, ys, widths, seed, lr, steps)
        own = sum(row_share(a, b, world_size) for a, b in pairwise(widths))
        whole = sum(a * b for a, b in pairwise(widths))
        # for activations, their gradients, and the random state that torch's checkpoint keeps
        room = 4 * each * (sum(widths) + widths[0]) + RANDOM_STATE * (len(widths) - 1)
        checks = [LayersAre(*mine, own, whole, room) for mine in truth]
        yield Case(
            f"{world_size} ranks, {len(widths) - 1} layers, widths {', '.join(map(str, widths))}",
            world_size,
            [(x, y, widths, seed, lr, steps, checks[0].most) for x, y in zip(xs, ys, strict=True)],
            checks,
        )


def row_share(inside: int, outside: int, ranks: int) -> int:
    """Give a shard's elements where whole rows are dealt out, as fully_shard does."""
    return share(outside, ranks) * inside


def _trained(
    xs: Sequence[torch.Tensor],
    ys: Sequence[torch.Tensor],
    widths: Sequence[int],
    seed: int,
    lr: float,
    steps: int,
) -> list[tuple[tuple[torch.Tensor, ...], tuple[torch.Tensor, ...], tuple[float, ...]]]:
    """Train one dense stack: each rank's outputs and x.grad, and the squared length of the mean."""
    layers = [w.requires_grad_() for w in whole_weights(widths, seed)]
    outputs: list[list[torch.Tensor]] = [[] for _ in xs]
    inputs: list[list[torch.Tensor]] = [[] for _ in xs]
    squares = []
    for _ in range(steps):
        for rank, (x, y) in enumerate(zip(xs, ys, strict=True)):
            start = h = x.clone().requires_grad_()
            for weight in layers:
                h = torch.tanh(h @ weight.T)
            mse_loss(h, y).backward()
            assert start.grad is not None
            outputs[rank].append(h.detach())
            inputs[rank].append(start.grad)
        mean = [w.grad / len(xs) for w in layers if w.grad is not None]
        squares.append(sum(float((g * g).sum()) for g in mean))
        for weight, grad in zip(layers, mean, strict=True):
            weight.data -= lr * grad
            weight.grad = None
    return [(tuple(o), tuple(i), tuple(squares)) for o, i in zip(outputs, inputs, strict=True)]


def layer_bytes(case: Case, rank: int) -> int:
    widths: Sequence[int] = case.inputs[rank][2]
    return DOUBLE * max(
        row_share(a, b, case.world_size) * case.world_size for a, b in pairwise(widths)
    )


def trips_problem(trace: Trace, case: Case) -> str:
    """Say where a step has more than two gathers for a layer, or not one scatter."""
    for rank in range(case.world_size):
        backwards = (len(case.inputs[rank][2]) - 1) * int(case.inputs[rank][5])
        made = [event.op for event in trace.of(rank)]
        gathers, scatters = made.count("all_gather"), made.count("reduce_scatter")
        if gathers > 2 * backwards:
            return (
                f"rank {rank} calls all_gather {gathers} times; {2 * backwards} are enough: once in "
                "forward and once in backward of each layer."
            )
        if scatters != backwards:
            return (
                f"rank {rank} calls reduce_scatter {scatters} times; {backwards} is right: once in "
                "each layer's backward."
            )
    return ""


# --- fully_shard -----------------------------------------------------------------------------------


def fsdp_cases(rng: random.Random) -> Iterator[Case]:
    for world_size, steps, lr in ((2, 3, 0.02), (3, 2, 0.05)):
        seed, each = rng.randrange(1000), 6
        x, y = draws.digits(rng, world_size * each)
        wanted = trained(x, y, seed, steps, lr)
        dealt = sum(
            share(p.shape[0], world_size) * p[0].numel() for p in classifier(0).parameters()
        )
        yield Case(
            f"{world_size} ranks, {steps} steps of Adam",
            world_size,
            [
                (xs, ys, steps, lr, seed)
                for xs, ys in zip(x.split(each), y.split(each), strict=True)
            ],
            [FullWeightsAre(wanted, dealt)] * world_size,
        )


def gathered_at_once(trace: Trace, case: Case) -> str:
    """Say which all_gather hands in more than the largest layer's share, its rows dealt out."""
    most = DOUBLE * max(
        sum(share(p.shape[0], case.world_size) * p[0].numel() for p in layer.parameters())
        for layer in classifier(0).children()
    )
    for event in trace:
        if event.op == "all_gather" and event.nbytes > most:
            return (
                f"rank {event.rank} hands in {event.nbytes:,} bytes to one all_gather; {most:,} are its "
                "share of the largest layer. fully_shard each layer first, the whole model last: else all "
                "of its weights are whole at once."
            )
    return ""


def gathered_again(trace: Trace, case: Case) -> str:
    """Say where backward uses weights that stayed whole since forward."""
    layers = sum(bool(list(layer.parameters())) for layer in classifier(0).children())
    for rank in range(case.world_size):
        made = [event.op for event in trace.of(rank)]
        enough = 2 * layers * int(case.inputs[rank][2])
        if "reduce_scatter" not in made:
            continue
        while made.pop() != "reduce_scatter":  # what comes after the last step does not count
            pass
        if (gathers := made.count("all_gather")) < enough:
            return (
                f"rank {rank} calls all_gather {gathers} times while it trains; {enough} are right, for "
                f"each of {layers} layers once in forward and once in backward of each step. Who keeps "
                "the weights whole in between (`reshard_after_forward=False`, no root) holds the whole "
                "model when forward ends."
            )
    return ""
