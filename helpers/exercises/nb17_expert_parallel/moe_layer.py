"""17.4 A layer of several experts per rank (25 min, ●●●●○)

- In which order do copies arrive, by sender or by expert? And in which order should you return results?
- Count the copies for each expert instead of each rank, and exchange these counts. Then for each sender, a
  rank knows how many of the rows belong to each of its experts. So it can list the expert of every arrived
  row, sort the rows by this list, and restore their order before returning results.
- theirs.view(world_size, local) has a row for each sender and a column for each local expert. The expert of
  each arrived row: torch.arange(local).repeat(world_size).repeat_interleave(theirs); by_expert = its
  argsort(); grouped(arrived[by_expert], up, theirs.view(world_size, local).sum(0).tolist()); then
  done[by_expert] = rows. At the end: y[order] = back; multiply by the weights, sum over the k copies, and add
  shared(x).
"""

import torch

from helpers.checks.author import *
from helpers.exercises.nb17_expert_parallel.in_ranks import run_moe_layer


def case(draw: Draw) -> Case:
    n, local = draw.ranks, draw.of(2, 2, 3, 1)
    count = n * local
    k = min(count, draw.of(2, 2, 3, 1))
    features, hidden = draw.of((2, 3), (3, 5), (4, 2))
    dtype, generator = draw.dtype(torch.float64, torch.float64, torch.float32), draw.generator()
    tokens = [draw.of(4, 3, 5, 0, 7, 2) for _ in range(n)]

    def normal(*shape: int) -> torch.Tensor:
        return torch.randn(shape, generator=generator, dtype=dtype)

    wish = torch.rand(sum(tokens), count, generator=generator)
    if draw.of("any", "any", "one is chosen by none") != "any" and count > k:
        wish[:, draw.whole(0, count - 1)] -= 2
    if draw.of(False, False, True) and n > 1 and count - local >= k:
        first = local * draw.rank()
        wish[:, first : first + local] -= 2  # nothing arrives at this rank
    experts = wish.topk(k).indices
    weights = torch.rand(sum(tokens), k, generator=generator, dtype=dtype) + 0.1
    weights = weights / weights.sum(1, keepdim=True)
    up, down = normal(count, features, hidden), normal(count, hidden, features)
    x, grad, shared = (
        normal(sum(tokens), features),
        normal(sum(tokens), features),
        normal(features, features),
    )
    saw = experts.flatten().bincount(minlength=count).view(n, local).sum(1).tolist()
    row = features * x.element_size()
    rows = [0, *torch.tensor(tokens).cumsum(0).tolist()]
    own = [slice(rows[r], rows[r + 1]) for r in range(n)]
    held = [slice(r * local, (r + 1) * local) for r in range(n)]
    return Case(
        f"{', '.join(map(str, tokens))} tokens, {k} of {count} experts, {local} on each rank, {dtype}",
        [
            (
                x[s].clone(),
                experts[s].clone(),
                weights[s].clone(),
                up[held[r]].clone(),
                down[held[r]].clone(),
                shared,
                grad[s].clone(),
            )
            for r, s in enumerate(own)
        ],
        right=Reference(margin=1.0),
        facts={
            "bytes": [
                max(c * k * row, s * row, 8 * count) for c, s in zip(tokens, saw, strict=True)
            ],
            "k": k,
            "local": local,
        },
        shown="x, experts, weights, up, down, shared",
        telling=local > 1 and k > 1,
    )


def max_exchange_bytes(case: Case, rank: int) -> int:
    """Return the most bytes that one exchange needs: own copies, copies that arrive, or the counts."""
    found: int = case.facts["bytes"][rank]
    return found


EXERCISE = Exercise(
    case,
    (
        OnlyCalls(("all_to_all",)),
        Calls(
            phase="forward",
            exactly=3,
            bytes_per_call=max_exchange_bytes,
            missing="Three exchanges are needed: counts, copies out, results back.",
            why="Three exchanges are enough: counts, copies out, results back.",
            large_advice="Send each copy only to its expert's rank, without padding and without its weight.",
        ),
        Calls(
            phase="backward",
            exactly=2,
            bytes_per_call=max_exchange_bytes,
            missing="Gradients go through both exchanges of the copies in reverse.",
            why="Gradients go through both exchanges of the copies in reverse.",
            large_advice="Send each gradient only to a rank that had its copy.",
        ),
        WaitsForAll(),
    ),
    failed=(
        CrashAdvice(
            "cannot reshape tensor of 0 elements",
            "A rank may have no tokens, and -1 is ambiguous for a tensor without elements. So name all "
            "sizes, for example `view(n, k, x.shape[1])`.",
        ),
        CrashAdvice(
            "split_with_sizes expects split_sizes to sum",
            "The counts for the product don't add up to its rows. The number of rows that arrived follows "
            "from the exchanged counts, not from this rank's counts.",
        ),
        CrashAdvice(
            "index .* is out of bounds for dimension 0",
            "An order has more entries than there are rows: `x` has one row for each token, copies are k "
            "times as many, and the number of rows that arrived follows from the exchanged counts.",
        ),
        CrashAdvice(
            "enforce fail|[Oo]verflow|negative dimension|Invalid number|not enough memory",
            "Ranks expect different numbers of rows than they are sent. Either some counts were never "
            "written: exchange one number for each expert, including experts without tokens. Or the counts "
            "are grouped wrongly: those of one rank's experts are next to one another, "
            "`counts.view(world_size, local)`.",
        ),
        CrashAdvice(
            "",
            "The ranks disagree on how many rows they send to each other. Exchange one count for each expert "
            "first, including experts without tokens: `bincount(minlength=world_size * local)`.",
            applies_if_killed=True,
        ),
        CrashAdvice(
            "does not require grad",
            "A rank's result has no graph, so its backward makes no call. Both exchanges and the products "
            "must run on every rank, even without rows.",
        ),
    ),
    kind=Kind.MODULE,
    driver=run_moe_layer,
    reported=("result",),
    sizes=(1, 2, 3, 4),
    count=16,
)
