"""Run answers of notebook 08 inside the ranks, and record their training.

Each function returns plain values by name. A string describes a problem not visible in values; "" means none.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import torch
import torch.distributed as dist
from torch import equal, nn

from helpers.exercises.shared.in_ranks.classifier import (
    Rule,
    Weights,
    build_classifier,
    copy_laid_out,
    flat,
    grads_of,
)
from helpers.exercises.shared.in_ranks.lend import define_if_missing
from helpers.exercises.shared.in_ranks.steps import record_steps

MAX_STATE_CHARS = 100
"""Largest length of a loader's state as JSON, in characters."""
IGNORED = -100
"""The class of the tokens that `cross_entropy` leaves out."""
WEIGHTS_CHANGED = "the weights have changed, but only the gradients `p.grad` may change"


def run_with_gradients(
    answer: Callable[..., Any],
    rank: int,
    world_size: int,
    parameters: Sequence[tuple[str, torch.Tensor, torch.Tensor | None, bool]],
    tied: bool,
    *args: Any,
) -> dict[str, Any]:
    """Call the answer on a model with these gradients, as if backward had just computed them."""
    model, made = nn.Module(), {}
    # Create them in a different order on each rank, so that iterating over a Python set of them also differs.
    for name, value, grad, trained in (*parameters[rank % len(parameters) :], *parameters)[
        : len(parameters)
    ][:: 1 - 2 * (rank % 2)]:
        made[name] = nn.Parameter(copy_laid_out(value), requires_grad=trained)
        made[name].grad = None if grad is None else copy_laid_out(grad)
    for name, *_ in parameters:
        model.register_parameter(name, made[name])
    if tied:
        model.add_module("twin", nn.Module())
        model.twin.register_parameter("weight", next(model.parameters()))  # type: ignore[union-attr]
    answer(model, *args)
    named = dict(model.named_parameters())
    same = all(equal(named[name].detach(), value) for name, value, *_ in parameters)
    return {"weights": "" if same else WEIGHTS_CHANGED, **grads_of(model)}


def run_accumulation(
    answer: Callable[..., Any],
    rank: int,
    world_size: int,
    weights: Weights,
    steps: Sequence[list[tuple[torch.Tensor, torch.Tensor]]],
    stale: float | None,
) -> dict[str, Any]:
    """Call the answer for several accumulation steps, leaving the gradients of one step for the next.

    If all classes of a microbatch are ignored, an answer may run forward but not backward.
    """
    define_if_missing(average_gradients)
    model = build_classifier(weights)
    for p in model.parameters():
        p.grad = None if stale is None else torch.full_like(p, stale)
    pairs = [pair for microbatches in steps for pair in microbatches]
    fits = max(len(x) for x, _ in pairs)
    ignored = sum(bool((y == IGNORED).all()) for _, y in pairs)
    inside, most, largest, evaluates = 0, 0, 0, False

    def before_forward(_: Any, inputs: tuple[Any, ...]) -> None:
        nonlocal inside, most, largest, evaluates
        evaluates |= not model.training
        inside += torch.is_grad_enabled()
        most, largest = max(most, inside), max(largest, len(inputs[0]))

    def after_backward(_: Any) -> None:
        nonlocal inside
        inside -= 1

    model.register_forward_pre_hook(before_forward)
    next(model.parameters()).register_hook(after_backward)
    found: dict[str, Any] = {}
    for number, microbatches in enumerate(steps, 1):
        answer(model, list(microbatches))
        found |= {f"step {number}: {name}": grad for name, grad in grads_of(model).items()}
    at_once = (
        f"{largest} rows of x go through the model at once, but the largest microbatch has {fits}"
    )
    held = f"{most} microbatches ran forward before the first backward, so all their activations were kept"
    same = equal(flat(model), flat(build_classifier(weights)))
    return {
        "weights": "" if same else WEIGHTS_CHANGED,
        **found,
        "samples": at_once if largest > fits else "",
        "held": held if most > 1 + ignored else "",
        "mode": "the model runs in eval mode" if evaluates else "",
    }


class Training(NamedTuple):
    """A rank's initial weights, optimizer settings and samples.

    last: the answer's last argument. steps: the number of this rank's optimizer steps in each call. buffer:
    whether the model has a buffer, with different values on each rank, which must not change.
    """

    weights: Weights
    rule: Rule
    x: torch.Tensor
    y: torch.Tensor
    batch_size: int
    last: int
    steps: int
    calls: int = 1
    buffer: bool = False


def run_training(
    answer: Callable[..., Any], rank: int, world_size: int, training: Training
) -> dict[str, Any]:
    """Call the answer to train a model, in one or more calls."""
    define_if_missing(average_gradients)
    model = build_classifier(training.weights)
    if training.buffer:
        model.register_buffer("seen", torch.full((3,), float(rank)))
    lr, momentum, decay = training.rule
    optimizer = torch.optim.SGD(model.parameters(), lr, momentum, weight_decay=decay)
    samples = 0

    def forward(_: Any, inputs: tuple[Any, ...]) -> None:
        nonlocal samples
        samples += len(inputs[0])

    model.register_forward_pre_hook(forward)
    recorded = record_steps(model, optimizer, "optimizer.step()", training.steps * training.calls)
    task = training.x, training.y, training.batch_size, training.last
    for _ in range(training.calls):
        losses = answer(rank, world_size, model, optimizer, *task)
    kept = not training.buffer or bool((model.get_buffer("seen") == rank).all())
    return {
        **recorded(),
        "samples": samples,
        "losses": losses,
        "buffer": "" if kept else "a buffer has changed, but only parameters should be averaged",
    }


def run_in_jobs(
    answer: Callable[..., Any],
    rank: int,
    world_size: int,
    samples: int,
    batch_size: int,
    seed: int,
    jobs: Sequence[tuple[int, int]],
) -> dict[str, Any]:
    """Call the answer to read samples in several jobs, one after another.

    jobs: (number of ranks, number of steps) of each job. A job gets the state returned by rank 0 of the
    previous job, written as JSON. No message is needed to pass the state, because each rank also calls the
    answer as rank 0.
    """
    written = "null"
    before = torch.get_rng_state()
    shares: list[list[list[int]]] = []
    for size, steps in jobs:
        told = size, samples, batch_size, seed, steps
        mine, _ = answer(rank, *told, json.loads(written)) if rank < size else ((), None)
        shares.append([[int(sample) for sample in share] for share in mine])
        _, state = answer(0, *told, json.loads(written))
        written, problem = _as_json(state)
        if problem:
            return {"state": problem, "shares": [[]] * len(jobs), "reseeded": False}
    reseeded = not equal(torch.get_rng_state(), before)
    return {"state": "", "shares": shares, "reseeded": reseeded}


def _as_json(state: Any) -> tuple[str, str]:
    """Return (JSON, "") for a state, or ("", reason) if it cannot be written as JSON."""
    if not isinstance(state, dict):
        return "", f"the state is of type {type(state).__name__}, not a dict"
    try:
        written = json.dumps(state)
    except (TypeError, ValueError) as error:
        return "", f"JSON cannot hold the state: {error}"
    if len(written) > MAX_STATE_CHARS:
        characters = f"{len(written)} characters as JSON"
        return "", f"the state takes {characters}, which is more than {MAX_STATE_CHARS}"
    return written, ""


# --- the solution of an earlier exercise, if the answer needs it ----------------------------------


def average_gradients(model: nn.Module) -> None:
    """Replace each gradient with its mean over all ranks."""
    for p in model.parameters():
        if p.requires_grad:
            p.grad = torch.zeros_like(p) if p.grad is None else p.grad
            dist.all_reduce(p.grad, op=dist.ReduceOp.AVG)
