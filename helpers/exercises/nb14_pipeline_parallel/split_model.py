"""14.1 Split a model over two ranks (10 min, ●●○○○)

- One tensor is sent in forward, and one in backward. Which tensor is sent in backward, and which rank
  computes it?
- Rank 0: a = model[:cut](x), send a.detach(), receive a tensor g of the same shape, a.backward(g). Rank 1:
  receive into an empty tensor, call requires_grad_() on it, compute the loss, loss.backward(), and send the
  `.grad` of the received tensor.
- b = torch.empty(len(y), model[cut].in_features, dtype=model[cut].weight.dtype); dist.recv(b, 0);
  b.requires_grad_(); loss = cross_entropy(model[cut:](b), y); loss.backward(); dist.send(b.grad, 0); return
  loss.detach()
"""

import torch
from torch.nn.functional import cross_entropy

from helpers.checks.author import *
from helpers.checks.rules_transfers import EachIsWaitedFor
from helpers.exercises.nb12_zero_and_fsdp.in_ranks.fsdp2 import build_sequential
from helpers.exercises.nb12_zero_and_fsdp.shared import draw_state
from helpers.exercises.nb14_pipeline_parallel.in_ranks import copy_gradients, run_split_model
from helpers.exercises.nb14_pipeline_parallel.shared import P2P_ONLY, draw_samples, has_other_cause

MODELS = (
    ("Linear Tanh Linear", 2),
    ("Linear Tanh Linear ReLU Linear", 2),
    ("Linear Tanh Linear Sigmoid Linear", 4),
    ("Linear Linear Tanh Linear", 1),
    ("Flatten Linear Tanh Linear", 3),
)
"""The layers of each model, and the index of its cut."""


def case(draw: Draw) -> Case:
    (text, cut), dtype, rows = (
        draw.of(*MODELS),
        draw.dtype(torch.float32, torch.float64),
        draw.whole(1, 7),
    )
    kinds = text.split()
    widths = [draw.whole(2, 9) for _ in range(text.count("Linear") + 1)]
    state = draw_state(draw, kinds, widths, dtype, always_bias=False)
    x = draw_samples(draw, dtype, rows, widths[0])
    y = torch.randint(0, widths[-1], (rows,), generator=draw.generator())

    model = build_sequential(kinds, state)
    loss = cross_entropy(model(x), y)
    loss.backward()
    whole = copy_gradients(model)
    halves = (range(cut), range(cut, len(kinds)))

    def judge_half(values: dict[str, torch.Tensor | None], half: range) -> Parts:
        return {
            k: v if int(k.split("`")[1].split(".")[0]) in half else None for k, v in values.items()
        }

    right = [
        {
            **{f"times that layer {i} ran": int(i in half) for i in range(len(kinds))},
            **judge_half(whole, half),
            "loss": loss.detach() if rank else None,
            "graph": "",
        }
        for rank, half in enumerate(halves)
    ]
    return Case(
        f"{plural(rows, 'sample')}, {', '.join(kinds)}, cut at {cut}, {dtype}",
        [(kinds, state, cut, x, None), (kinds, state, cut, None, y)],
        right=NamedParts(right),
        facts={"bytes": rows * state[f"{cut}.weight"].shape[1] * dtype.itemsize},
    )


EXERCISE = Exercise(
    case,
    (
        P2P_ONLY,
        Calls("send", 1, why="Send the activation one way and its gradient the other way."),
        Calls("send", total_bytes="bytes"),
        EachIsWaitedFor(),
    ),
    failed=(
        HangAdvice(
            "There are two messages, one each way: rank 0 sends the activation and receives its gradient; "
            "rank 1 receives the activation and, after its backward, sends the gradient.",
            when=has_other_cause,
        ),
    ),
    kind=Kind.MODULE,
    driver=run_split_model,
    reported=("graph",),
    sizes=(2,),
)
