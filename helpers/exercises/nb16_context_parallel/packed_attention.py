"""16.4 Packed documents (15 min, ●●●○○)

- You only need a small change to your ring attention. Which two conditions decide whether a query sees a key,
  and can a rank check both conditions for the keys of any other rank?
- On every rank, `lengths` shows where the documents end: a rank has length // world_size tokens of each
  document. So you need to compute each token's document number only once. Rank r's positions are the zigzag
  positions of each document, one document after the other.
- places = [torch.cat([zigzag(length, n, r) for length in lengths]) for r in range(n)]; numbers =
  torch.arange(len(lengths)).repeat_interleave(torch.tensor(lengths) // n); same = numbers[:, None] ==
  numbers. Then run the ring: after `step` steps, the mask is same & (places[rank][:, None] >= places[(rank -
  step) % n]). Return the output, places[rank], and (places[rank] + 1).sum().item().
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
"""The allowed error, as a multiple of the usual error.

The right value was computed in float64, from all keys at once.
"""


def case(draw: Draw) -> Case:
    n = draw.ranks
    chunks = [draw.of(1, 1, 2, 3) for _ in range(draw.of(3, 3, 4, 5, 2, 1))]
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
        # the number of each token's document may also be sent around the ring
        facts=ring_byte_limits(n, whole.k.nbytes // n, 16 * sum(lengths) // n)
        | {"messages": 4 * (n - 1)},
        telling=len(lengths) > 2,
    )


EXERCISE = Exercise(
    case,
    (
        OnlyCalls(("send", "recv")),
        Predicate(find_excess_in_forward, "keys and values go around once in forward"),
        Calls(
            "send",
            most="messages",
            phase="forward",
            text="one ring for all documents",
            why="Keys and values of all documents go around together, and the mask tells documents apart.",
        ),
        Calls(
            "send",
            total_bytes="all",
            why="In backward, gradients are passed in the opposite direction.",
        ),
    ),
    failed=(
        HangAdvice("Every rank should pass on keys and values world_size - 1 times."),
        CrashAdvice(
            "does not require grad",
            "The output has no graph. Is a tensor detached, or computed under no_grad?",
        ),
    ),
    kind=Kind.MODULE,
    driver=run_packed,
    reported=("result",),
    sizes=(1, 2, 3, 4, 5, 6),
)
