"""16.4 Packed documents (12 min, ●●●○○)

- A document must be treated as if it were alone. Which of your functions computes causal attention over the
  ranks for one sequence, and what does it need to know of its tokens?
- For each document, positions = zigzag(length, world_size, rank), and this rank has len(positions) of its
  tokens. Split q, k and v along dimension 2 into these parts, and call `ring_attention` for each document.
- own = [zigzag(length, world_size, rank) for length in lengths]; sizes = [len(x) for x in own]; q, k, v =
  (x.split(sizes, 2) for x in (q, k, v)); out = [ring_attention(*part) for part in zip(q, k, v, own)]. Return
  torch.cat(out, 2), positions = torch.cat(own), and (positions + 1).sum().item().
"""

import torch

from helpers.checks.author import *
from helpers.exercises.nb16_context_parallel.in_ranks import run_packed
from helpers.exercises.nb16_context_parallel.shared import (
    draw_sequence,
    find_excess_in_forward,
    ring_byte_limits,
)

ERROR_MARGIN = 8.0
"""How many times the usual error is allowed.

The right value was computed in float64, from all keys at once.
"""


def case(draw: Draw) -> Case:
    n = draw.ranks
    chunks = [draw.of(1, 1, 2, 3) for _ in range(draw.of(2, 3, 4, 3, 1))]
    lengths = [2 * n * chunk for chunk in chunks]
    whole = draw_sequence(draw, draw.whole(1, 2), sum(lengths), may_share=True)
    document = torch.arange(len(lengths)).repeat_interleave(torch.tensor(lengths))
    position = torch.cat([torch.arange(length) for length in lengths])
    causal = position[:, None] >= position
    dense = whole.dense_attention((document[:, None] == document) & causal)
    given, parts = [], []
    for rank in range(n):
        # The number of a token's chunk in its document
        number = position // torch.tensor(chunks)[document]
        own = ((number == rank) | (number == 2 * n - 1 - rank)).nonzero()[:, 0]
        given.append((*whole.part_at(own), lengths))
        part = {name: x[:, :, own] for name, x in dense.items()}
        out = part.pop("output")
        scores = int((position[own] + 1).sum())
        values = {"positions": position[own], "output": out, **part, "scores": scores}
        parts.append({"result": "", **values})
    return Case(
        f"{'a document' if len(lengths) == 1 else 'documents'} of {', '.join(map(str, lengths))} tokens, "
        f"{whole.describe()}",
        given,
        right=NamedParts(
            parts, {name: ERROR_MARGIN * size for name, size in whole.error_scales().items()}
        ),
        # the number of each token's document may be sent around the ring, too
        facts=ring_byte_limits(n, whole.k.nbytes // n, 16 * sum(lengths) // n),
        telling=len(lengths) > 1,
    )


EXERCISE = Exercise(
    case,
    (
        OnlyCalls(("send", "recv")),
        Predicate(find_excess_in_forward, "keys and values go around once in forward"),
        Calls("send", total_bytes="all", why="In backward gradients go the way back."),
    ),
    failed=(
        HangAdvice(
            "Every rank goes through the same documents, in the same order, with as many steps."
        ),
        CrashAdvice(
            "does not require grad",
            "The output has no graph: is something detached, or computed under no_grad?",
        ),
    ),
    kind=Kind.MODULE,
    driver=run_packed,
    reported=("result",),
    sizes=(1, 2, 3, 4, 5, 6),
)
