"""13.2 Checkpoint the activations (10 min, ●●○○○)

- torch has this: `torch.utils.checkpoint`. Which of its two ways works where x has no gradient?
- checkpoint(block, x, use_reentrant=False) in place of block(x), for the blocks whose index is a multiple
  of `every`.
- for i, block in enumerate(blocks): x = checkpoint(block, x, use_reentrant=False) if i % every == 0 else
  block(x). Then return x.
"""

from collections.abc import Sequence

import torch

from helpers.checks.author import *
from helpers.exercises.nb13_fsdp_in_practice.in_ranks import Block, Checkpointed, run_checkpointed
from helpers.exercises.shared.in_ranks.classifier import grad_of

HELD = "After forward, retain only the input of each checkpointed block, and the output of the last block."


def case(draw: Draw) -> Case:
    n, depth = draw.ranks, draw.whole(3, 5)
    every = draw.of(1, 2, 2, 3)
    learns, dtype = draw.of(True, False), draw.dtype(torch.float32, torch.float64)
    tokens, width = draw.whole(10, 14), draw.whole(2, 4)
    hidden, generator = 8 * width, draw.generator()

    def random(*shape: int) -> torch.Tensor:
        return torch.randn(shape, generator=generator, dtype=torch.float64).to(dtype)

    weights = [
        (random(width, hidden) / width**0.5, random(hidden, width) / hidden**0.5, random(hidden))
        for _ in range(depth)
    ]
    xs, grads = ([random(tokens, width) for _ in range(n)] for _ in range(2))
    seeds = [draw.whole(0, 10**6) for _ in range(n)]
    marked = [i % every == 0 for i in range(depth)]
    small, large = tokens * width * dtype.itemsize, tokens * hidden * dtype.itemsize
    # a block that is not checkpointed keeps what gelu and the second product take in, and its mask
    most = (depth + 2) * small + marked.count(False) * (2 * large + tokens * hidden) + large // 2
    return Case(
        f"{plural(depth, 'block')}, every {every}, {tokens} x {width} of {dtype}, x "
        f"{'learns' if learns else 'does not learn'}",
        [
            (Checkpointed(weights, xs[r], grads[r], every, seeds[r], learns, most),)
            for r in range(n)
        ],
        right=ByName(
            stepped(weights, xs, grads, seeds, learns, [2 if m else 1 for m in marked]),
            32.0,
            lambda name, got: HELD if name == "held" else "",
        ),
        facts={"gathers": depth, "backward": 2 * depth},
        seconds=20.0,
    )


def stepped(
    weights: Sequence[tuple[torch.Tensor, ...]],
    xs: Sequence[torch.Tensor],
    grads: Sequence[torch.Tensor],
    seeds: Sequence[int],
    learns: bool,
    runs: Sequence[int],
) -> list[Parts]:
    """Step each rank's samples in one process: what comes out, and the mean gradients' shards by rows."""
    found: list[dict[str, object]] = []
    learnt, of_x = [], []
    for x, grad, seed in zip(xs, grads, seeds, strict=True):
        blocks = [Block(*own) for own in weights]
        h = start = x.clone().requires_grad_(learns)
        with torch.random.fork_rng(devices=[]):  # the caller's numbers stay as they are
            torch.manual_seed(seed)
            for block in blocks:
                h = block(h)
            h.backward(grad)
        of_x.append(start.grad)
        found.append({"output": h.detach()})
        learnt.append(
            {
                f"gradient of blocks.{i}.{k}": grad_of(p)
                for i, block in enumerate(blocks)
                for k, p in block.named_parameters()
            }
        )
    for r, own in enumerate(found):
        for name in learnt[0]:
            mean = torch.stack([each[name] for each in learnt]).mean(0)
            own[name] = shard_of(mean, r, len(xs))
        own |= {"gradient of x": of_x[r], "runs of each block": list(runs), "held": ""}
    return list(found)


def shard_of(whole: torch.Tensor, rank: int, ranks: int) -> torch.Tensor:
    """Give a rank's rows, as fully_shard cuts them."""
    rows = whole.chunk(ranks)
    return rows[rank] if rank < len(rows) else whole[:0]


EXERCISE = Exercise(
    case,
    (
        OnlyCalls(("all_gather", "reduce_scatter")),
        Calls(phase="forward", exactly="gathers", why="Each block is gathered once in forward."),
        Calls(
            phase="backward",
            exactly="backward",
            why="Checkpoint the call of the whole block: its weights are then gathered once in backward.",
        ),
    ),
    failed=(
        Failed(
            "does not require grad",
            "The output has no graph. Where x needs no gradient, torch's reentrant checkpoint "
            "(`use_reentrant=True`) drops those of the weights, too; so does no_grad around forward.",
        ),
    ),
    kind=Kind.MODULE,
    driver=run_checkpointed,
    reported=("held", "runs of each block"),
    sizes=(2, 3),
    count=12,
)
