"""Exercises of notebook 11: weights, gradients and optimizer state in shards."""

from __future__ import annotations

from helpers.checks.rules import Count, Holds, OnlyCalls
from helpers.checks.rules_collectives import Awaited, HandedIn
from helpers.exercises.look_at_zero import look_at_optimizer
from helpers.exercises.look_at_zero_layers import look_at_layers
from helpers.exercises.look_at_zero_more import look_at_fsdp2, look_at_scatter
from helpers.exercises.memory_plans import look_at_plan, plan_cases
from helpers.exercises.model import Exercise, Kind
from helpers.exercises.rules_gradients import TotalHandedIn
from helpers.exercises.zero_cases import (
    fsdp_cases,
    gathered_again,
    gathered_at_once,
    gradient_bytes,
    layer_bytes,
    layer_cases,
    optimizer_cases,
    scatter_cases,
    share_bytes,
    steps_bytes,
    steps_calls,
    trips_problem,
)

NOTEBOOK = "11_zero_and_fsdp"
_PROGRAMMES = "helpers.exercises.zero_programmes"

EXERCISES = (
    Exercise(
        "ShardedOptimizer",
        "11.1",
        "An optimizer with sharded state",
        NOTEBOOK,
        Kind.MODULE,
        optimizer_cases,
        (
            "torch's optimizer makes state for the parameters that it is given. Which parameter would "
            "you give it, so that it makes no more than this rank's share?",
            "__init__: flatten all weights with `torch.nn.utils.parameters_to_vector`, pad, `clone()` "
            "your slice into a Parameter, make `optimizer_class([shard], **options)`. step: give "
            "`shard.grad` your slice of the flat gradients, step, all_gather_single, "
            "vector_to_parameters.",
            "size = -(-n // p); own = slice(rank * size, (rank + 1) * size). step: g = torch.cat([q.grad."
            "flatten() for q in params]); shard.grad = pad(g, (0, size * p - n))[own].clone(); inner."
            "step(); whole = shard.new_empty(size * p); dist.all_gather_single(whole, shard."
            "detach()); vector_to_parameters(whole[:n], params). Then shard.grad = None.",
        ),
        minutes=14,
        difficulty=3,
        rules=(
            OnlyCalls(("all_gather", "broadcast")),
            HandedIn(
                share_bytes,
                "a rank hands in its own share only",
                "Each rank has stepped one slice: the others wait for that one.",
            ),
            TotalHandedIn("each new weight travels once a step", steps_bytes, steps_calls),
            Awaited(),
        ),
        programme=f"{_PROGRAMMES}:step_sharded",
        look=look_at_optimizer,
    ),
    Exercise(
        "reduce_scatter_gradients",
        "11.2",
        "Scatter the gradients",
        NOTEBOOK,
        Kind.MODULE,
        scatter_cases,
        (
            "After this call nobody needs a whole gradient any more. Which collective adds up and "
            "leaves each rank one part?",
            "Join the flat gradients with torch.cat, pad to a multiple of the world size, and let "
            "`dist.reduce_scatter_single` write into a new tensor of the share's length.",
            "flat = torch.cat([p.grad.flatten() for p in params]); size = -(-len(flat) // world_size); "
            "shard = flat.new_empty(size); dist.reduce_scatter_single(shard, pad(flat, (0, size * "
            "world_size - len(flat))), op=dist.ReduceOp.AVG); every p.grad = None.",
        ),
        minutes=6,
        difficulty=2,
        rules=(
            OnlyCalls(("reduce_scatter",)),
            Count("reduce_scatter", 1, why="Join the gradients first."),
            HandedIn(gradient_bytes, "each gradient travels once"),
            Awaited(),
        ),
        programme=f"{_PROGRAMMES}:scatter_gradients",
        look=look_at_scatter,
    ),
    Exercise(
        "FullyShardedLinear",
        "11.3",
        "A fully sharded layer",
        NOTEBOOK,
        Kind.MODULE,
        layer_cases,
        (
            "Within a Function autograd does not look on, so `Gather.apply(shard)` is a plain gather there. "
            "Who calls it, and how often in one step?",
            "Sharded.forward: gather, `x @ weight.T`, save `x` and the shard. "
            "backward: gather again; `grad @ weight` is for x; the padded, flat `grad.T @ x` goes "
            "through reduce_scatter_single with ReduceOp.AVG and is the shard's gradient.",
            "backward(ctx, grad): x, shard = ctx.saved_tensors; weight = Gather.apply(shard)[:n]"
            ".view(ctx.shape); g = (grad.T @ x).flatten(); mine = torch.empty_like(shard); "
            "dist.reduce_scatter_single(mine, pad(g, (0, len(mine) * p - len(g))), "
            "op=dist.ReduceOp.AVG); return grad @ weight, mine, None: one value for each argument of "
            "forward.",
        ),
        minutes=20,
        difficulty=4,
        rules=(
            OnlyCalls(("all_gather", "reduce_scatter")),
            Holds(trips_problem, "a layer is gathered twice and scattered once in a step"),
            HandedIn(layer_bytes, "nothing larger than a layer travels"),
            Awaited(),
        ),
        programme=f"{_PROGRAMMES}:train_layers",
        look=look_at_layers,
    ),
    Exercise(
        "fsdp2_parity",
        "11.4",
        "The same with fully_shard",
        NOTEBOOK,
        Kind.MODULE,
        fsdp_cases,
        (
            "In which order: make the weights equal, shard, make the optimizer? Two of the three "
            "change which tensors the model has.",
            "Broadcast every `p.data` from rank 0. Then fully_shard(layer, mesh=mesh) for each "
            "layer with parameters, and fully_shard(model, mesh=mesh). Then the optimizer, the steps, and "
            "`p.full_tensor()` for each parameter.",
            "mesh = init_device_mesh('cpu', (world_size,)); for layer in model: if list(layer."
            "parameters()): fully_shard(layer, mesh=mesh). At the end: return {name: p.full_tensor() "
            "for name, p in model.named_parameters()}.",
        ),
        minutes=10,
        difficulty=2,
        rules=(
            OnlyCalls(("broadcast", "all_gather", "reduce_scatter")),
            Holds(gathered_at_once, "one layer at a time is gathered"),
            Holds(gathered_again, "each layer is gathered in forward and again in backward"),
        ),
        programme=f"{_PROGRAMMES}:train_with_fsdp2",
        look=look_at_fsdp2,
    ),
    Exercise(
        "memory_plan",
        "11.5",
        "Plan the memory",
        NOTEBOOK,
        Kind.LOCAL,
        plan_cases,
        (
            "Write down the bytes of one parameter: how many are weight, gradient, state? Then ask for "
            "each stage which of them are cut.",
            "own = -(-sum(layers) // ranks). Stage 1: 4 bytes for each element of all, 12 for each of "
            "own. Stage 2: 2 and 14. Stage 3: 16 for own, and one layer whole.",
            "needs[3] = 16 * own + 4 * max(layers). stage = next((n for n, need in enumerate(needs) if "
            "need <= memory), None).",
        ),
        minutes=8,
        difficulty=2,
        look=look_at_plan,
        further=True,
    ),
)
