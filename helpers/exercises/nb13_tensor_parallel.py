"""Exercises of notebook 13: layers, attention and a loss cut over ranks, and DTensor beside them."""

from __future__ import annotations

from helpers.checks.rules import OnlyCalls
from helpers.checks.rules_phases import AwaitedByHand, CallsIn
from helpers.exercises.look_at_tp import (
    look_at_attention,
    look_at_column,
    look_at_dtensor,
    look_at_loss,
    look_at_mlp,
    look_at_row,
)
from helpers.exercises.model import Exercise, Kind
from helpers.exercises.tp_cases import (
    attention_cases,
    column_cases,
    dtensor_cases,
    input_bytes,
    layer_bytes,
    loss_cases,
    mlp_cases,
    needs_input_gradient,
    output_bytes,
    row_cases,
    two_numbers_a_token,
)

NOTEBOOK = "13_tensor_parallel"
_PROGRAMMES = "helpers.exercises.tp_programmes"
_ONE_EACH_WAY = (
    OnlyCalls(("all_reduce",)),
    CallsIn(
        "forward",
        1,
        most_bytes=input_bytes,
        missing="What `down` or `out` gives on a rank is one summand of the output.",
        why="Only the output is summed, once, at the end.",
        why_large="What is summed has the shape of x.",
    ),
    CallsIn(
        "backward",
        1,
        most_bytes=input_bytes,
        missing="What a rank knows of x's gradient is one summand.",
        why=(
            "Apply CopyToRanks to x once and let every product read the result: autograd adds up their "
            "gradients on the rank before backward sums over ranks."
        ),
        why_large="What is summed has the shape of x.",
    ),
    AwaitedByHand(),
)

EXERCISES = (
    Exercise(
        "ColumnParallelLinear",
        "13.1",
        "A column-parallel layer",
        NOTEBOOK,
        Kind.MODULE,
        column_cases,
        (
            "Forward needs nothing from anybody. Look again at the two gradients of x "
            "that the ranks computed: what is each of them short of?",
            "CopyToRanks.forward returns x.view_as(x); its backward clones the gradient, sums it with "
            "all_reduce and returns it. The layer keeps `dense.weight.chunk(world_size)[rank]`, cloned, as "
            "a Parameter.",
            "forward: return linear(CopyToRanks.apply(x), self.weight, self.bias). In __init__: part = "
            "dense.weight.detach().chunk(dist.get_world_size())[dist.get_rank()]; self.weight = "
            "torch.nn.Parameter(part.clone()); the bias likewise, if there is one.",
        ),
        minutes=12,
        difficulty=3,
        rules=(
            OnlyCalls(("all_reduce",)),
            CallsIn("forward", 0, why="Each rank has all of x and returns its own columns."),
            CallsIn(
                "backward",
                needs_input_gradient,
                most_bytes=layer_bytes,
                missing="What a rank knows of x's gradient is one summand.",
                why="Only the gradient of x is summed, and only if somebody asks for it.",
                why_large="It has the shape of x.",
            ),
            AwaitedByHand(),
        ),
        programme=f"{_PROGRAMMES}:run_layer",
        look=look_at_column,
    ),
    Exercise(
        "RowParallelLinear",
        "13.2",
        "A row-parallel layer",
        NOTEBOOK,
        Kind.MODULE,
        row_cases,
        (
            "Each rank computes one summand of the output. And the bias: how often may it be added?",
            "SumOverRanks.forward clones x, sums it with all_reduce and returns it; its backward returns "
            "the gradient as it is. The layer keeps its columns of the weight, "
            "`dense.weight.chunk(world_size, dim=1)[rank]`, and the whole bias.",
            "forward: total = SumOverRanks.apply(linear(x, self.weight)); return total if self.bias is "
            "None else total + self.bias",
        ),
        minutes=8,
        difficulty=2,
        rules=(
            OnlyCalls(("all_reduce",)),
            CallsIn(
                "forward",
                1,
                most_bytes=output_bytes,
                missing="What a rank computes is one summand of the output.",
                why="The products of all ranks are summed once.",
                why_large="What is summed has the shape of the output.",
            ),
            CallsIn(
                "backward",
                0,
                why="The gradient of the sum is complete on every rank: hand it on as it is.",
            ),
            AwaitedByHand(),
        ),
        programme=f"{_PROGRAMMES}:run_layer",
        look=look_at_row,
    ),
    Exercise(
        "parallel_mlp",
        "13.3",
        "A gated MLP",
        NOTEBOOK,
        Kind.MODULE,
        mlp_cases,
        (
            "Which two of the three products read the same x? How often must its gradient be summed?",
            "Begin with x = CopyToRanks.apply(x); gate and up both read it. The hidden elements are cut, "
            "so silu and the product need nobody. End with SumOverRanks.",
            "x = CopyToRanks.apply(x); hidden = silu(linear(x, gate)) * linear(x, up); return "
            "SumOverRanks.apply(linear(hidden, down))",
        ),
        minutes=6,
        difficulty=2,
        rules=_ONE_EACH_WAY,
        programme=f"{_PROGRAMMES}:run_block",
        look=look_at_mlp,
    ),
    Exercise(
        "parallel_attention",
        "13.4",
        "Attention by heads",
        NOTEBOOK,
        Kind.MODULE,
        attention_cases,
        (
            "A head needs its own query, key and value, and nothing of the other heads. Where do heads "
            "meet?",
            "CopyToRanks once; for each of query, key, value: linear, unflatten(-1, (-1, head_size)), "
            "transpose(1, 2). Then scaled_dot_product_attention(..., is_causal=True), back to (batch, "
            "time, heads * head_size), `out`, SumOverRanks.",
            "q, k, v = (linear(x, w).unflatten(-1, (-1, head_size)).transpose(1, 2) for w in (query, "
            "key, value)); mixed = scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, "
            "2).flatten(2)",
        ),
        minutes=10,
        difficulty=3,
        rules=_ONE_EACH_WAY,
        programme=f"{_PROGRAMMES}:run_block",
        look=look_at_attention,
        further=True,
    ),
    Exercise(
        "vocab_parallel_cross_entropy",
        "13.5",
        "A loss over a cut vocabulary",
        NOTEBOOK,
        Kind.MODULE,
        loss_cases,
        (
            "The loss of one token needs three numbers: the largest logit m of all words, the sum s of "
            "exp(logit - m), and the target's logit t. Which of them does a gradient flow through?",
            "m: amax of the detached logits, all_reduce with MAX. s: sum of exp(own logits - m), through "
            "SumOverRanks. t: own logit where the target lies in [first, first + own words), else 0, "
            "through SumOverRanks. The loss is the mean of log(s) + m - t.",
            "index = (target - first).clamp(0, logits.shape[1] - 1); own = logits.gather(1, index[:, "
            "None])[:, 0]; inside = (target >= first) & (target < first + logits.shape[1]); t = "
            "SumOverRanks.apply(torch.where(inside, own, 0))",
        ),
        minutes=15,
        difficulty=4,
        rules=(
            OnlyCalls(("all_reduce",)),
            CallsIn(
                "forward",
                3,
                at_most=True,
                most_bytes=two_numbers_a_token,
                why="The maximum, the sum and the target's logit: three calls.",
                why_large="Only a few numbers a token travel, never logits.",
            ),
            CallsIn("backward", 0, why="Each rank has what the gradient of its own logits needs."),
            AwaitedByHand(),
        ),
        programme=f"{_PROGRAMMES}:run_loss",
        look=look_at_loss,
    ),
    Exercise(
        "with_dtensor",
        "13.6",
        "The whole block with DTensor",
        NOTEBOOK,
        Kind.MODULE,
        dtensor_cases,
        (
            "Seven Linear layers: which of them read what every rank has, and which end with a sum?",
            "The keys of the plan are paths: attention.q, attention.k, attention.v, attention.o, mlp.gate, "
            "mlp.up, mlp.down. Those that read x are ColwiseParallel(), those that give the output back "
            "RowwiseParallel(). The norm is not in the plan.",
            "plan = {f'attention.{n}': ColwiseParallel() for n in 'qkv'}; plan['attention.o'] = "
            "RowwiseParallel(); the MLP likewise; return parallelize_module(model, mesh, plan)",
        ),
        minutes=6,
        difficulty=2,
        rules=(
            CallsIn(
                "forward",
                2,
                missing="One sum at the end of attention, one at the end of the MLP.",
                why="One sum at the end of attention, one at the end of the MLP.",
            ),
        ),
        programme=f"{_PROGRAMMES}:run_parallelized",
        look=look_at_dtensor,
    ),
)
