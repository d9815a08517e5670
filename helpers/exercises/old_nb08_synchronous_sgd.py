"""Exercises of notebook 08: ranks that train one model on their parts of the data."""

from __future__ import annotations

from helpers.checks.rules import Count, Holds, OnlyCalls
from helpers.checks.rules_collectives import Awaited
from helpers.exercises.look_at_sgd import look_at_gradients, look_at_training, look_at_weighted
from helpers.exercises.look_at_sgd_steps import look_at_accumulated, look_at_local, look_at_server
from helpers.exercises.model import Exercise, Kind
from helpers.exercises.rules_gradients import TotalHandedIn
from helpers.exercises.sgd_cases import (
    accumulation_bytes,
    accumulation_calls,
    accumulation_cases,
    average_cases,
    branching_bytes,
    branching_calls,
    local_bytes,
    local_calls,
    local_cases,
    server_bytes,
    server_calls,
    server_cases,
    star_problem,
    steps_bytes,
    steps_calls,
    training_cases,
    weighted_bytes,
    weighted_calls,
    weighted_cases,
    why_so_many,
    why_so_often,
)

NOTEBOOK = "08_synchronous_sgd"
_PROGRAMMES = "helpers.exercises.sgd_programmes"
_ONLY_ALL_REDUCE = OnlyCalls(("all_reduce",))

EXERCISES = (
    Exercise(
        "average_gradients",
        "8.1",
        "Average the gradients",
        NOTEBOOK,
        Kind.MODULE,
        average_cases,
        (
            "Loop over `model.parameters()`: it gives a shared weight once. What does a rank hand in "
            "for a parameter that its backward never reached?",
            "Skip what has `requires_grad=False`. For the rest: where `p.grad is None`, set it to "
            "`torch.zeros_like(p)`; then add up over the ranks and divide by `dist.get_world_size()`.",
            "for p in model.parameters(): if not p.requires_grad: continue; if p.grad is None: p.grad "
            "= torch.zeros_like(p); dist.all_reduce(p.grad); p.grad /= dist.get_world_size()",
        ),
        minutes=12,
        difficulty=2,
        rules=(
            _ONLY_ALL_REDUCE,
            TotalHandedIn(
                "each trained parameter's gradient travels once",
                branching_bytes,
                branching_calls,
                why_so_many,
            ),
            Awaited(),
        ),
        programme=f"{_PROGRAMMES}:average_branching",
        look=look_at_gradients,
    ),
    Exercise(
        "train_synchronously",
        "8.2",
        "Train as one",
        NOTEBOOK,
        Kind.MODULE,
        training_cases,
        (
            "Two things must be the same on all ranks: the weights at the start, and the gradient in "
            "each step. One thing must differ: the samples.",
            "Broadcast every parameter from rank 0 first. In each step: cut the batch out of x and y, "
            "take every world_size-th sample of it from your rank on, then zero_grad, loss, backward, "
            "average_gradients(model), optimizer.step().",
            "own = slice(step * batch_size + rank, (step + 1) * batch_size, world_size). For the value "
            "to return: mean = loss.detach(); dist.all_reduce(mean); losses.append(mean.item() / "
            "world_size).",
        ),
        minutes=15,
        difficulty=3,
        rules=(
            OnlyCalls(("all_reduce", "broadcast")),
            Count("broadcast", 4, at_most=True, why="Once, at the start."),
            TotalHandedIn(
                "one gradient and one loss travel in each step",
                steps_bytes,
                steps_calls,
                counts=lambda event: event.op == "all_reduce",
            ),
            Awaited(),
        ),
        programme=f"{_PROGRAMMES}:train",
        look=look_at_training,
    ),
    Exercise(
        "weighted_average_gradients",
        "8.3",
        "Unequal batches",
        NOTEBOOK,
        Kind.MODULE,
        weighted_cases,
        (
            "A rank's gradient is a mean over its own samples. What do you multiply it by to get back "
            "the sum over its samples?",
            "All ranks need the number of all samples: add up `torch.tensor(float(samples))` with "
            "all_reduce. A rank without samples hands in zeros.",
            "total = torch.tensor(float(samples)); dist.all_reduce(total). For each p: g = "
            "torch.zeros_like(p) if p.grad is None else p.grad; g *= samples / total; "
            "dist.all_reduce(g); p.grad = g.",
        ),
        minutes=12,
        difficulty=3,
        rules=(
            _ONLY_ALL_REDUCE,
            TotalHandedIn(
                "each gradient travels once, and one number of samples",
                weighted_bytes,
                weighted_calls,
            ),
            Awaited(),
        ),
        programme=f"{_PROGRAMMES}:average_weighted",
        look=look_at_weighted,
    ),
    Exercise(
        "accumulate_gradients",
        "8.4",
        "Accumulate, then synchronise once",
        NOTEBOOK,
        Kind.MODULE,
        accumulation_cases,
        (
            "`backward()` adds to `p.grad`. So what must happen once before the loop, and what once "
            "after it?",
            "The sum of k mean gradients is k times too large: divide each loss by the number of "
            "microbatches before backward.",
            "model.zero_grad(); for x, y in microbatches: loss = cross_entropy(model(x), y) / "
            "len(microbatches); loss.backward(). After the loop: average_gradients(model).",
        ),
        minutes=8,
        difficulty=2,
        rules=(
            _ONLY_ALL_REDUCE,
            TotalHandedIn(
                "the gradients travel once a step",
                accumulation_bytes,
                accumulation_calls,
                why_so_often,
            ),
            Awaited(),
        ),
        programme=f"{_PROGRAMMES}:accumulate",
        look=look_at_accumulated,
    ),
    Exercise(
        "local_sgd",
        "8.5",
        "Local SGD",
        NOTEBOOK,
        Kind.MODULE,
        local_cases,
        (
            "Between two meetings every rank trains as if it were alone. What is averaged when they "
            "meet: gradients or weights?",
            "There are `len(x) // batch_size` steps. After optimizer.step() of step number 1, 2, ...: "
            "if the number is a multiple of `every`, average the parameters.",
            "if (step + 1) % every == 0: for p in model.parameters(): dist.all_reduce(p.data); p.data "
            "/= world_size",
        ),
        minutes=10,
        difficulty=2,
        rules=(
            _ONLY_ALL_REDUCE,
            TotalHandedIn("the weights travel every so many steps", local_bytes, local_calls),
            Awaited(),
        ),
        programme=f"{_PROGRAMMES}:train_locally",
        look=look_at_local,
        further=True,
    ),
    Exercise(
        "sgd_with_parameter_server",
        "8.6",
        "A parameter server",
        NOTEBOOK,
        Kind.MODULE,
        server_cases,
        (
            "Write down one step: what does the server send, what does a worker send, and who calls "
            "optimizer.step()?",
            "Server, each step: send every parameter to every worker, receive every worker's "
            "gradients, average over the workers, step. After the last step, send the weights once "
            "more. A worker does the other half, in the same order.",
            "With `torch.nn.utils.parameters_to_vector` and `vector_to_parameters` a whole model is "
            "one message. The server writes the averaged vector back into each p.grad, cut by "
            "`p.numel()`.",
        ),
        minutes=20,
        difficulty=4,
        rules=(
            OnlyCalls(("send", "recv")),
            Holds(star_problem, "workers talk to rank 0 alone"),
            TotalHandedIn(
                "weights go out and gradients come in once a step",
                server_bytes,
                server_calls,
                counts=lambda event: event.op == "send",
            ),
        ),
        programme=f"{_PROGRAMMES}:serve_parameters",
        look=look_at_server,
        further=True,
    ),
)
