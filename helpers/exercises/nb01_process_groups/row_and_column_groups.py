"""1.5 Row and column groups (20 min, ●●●○○)

- `rows + cols` groups, and every rank calls `new_group` for each of them, also where it is no member. Only
  then does it use the two that it is in.
- Lay the ranks out as `torch.arange(world_size).reshape(rows, cols)`. Loop over its rows, then over its
  columns; keep the group where `rank` is in the list. Reduce clones.
- for ranks in grid.tolist(): g = dist.new_group(ranks); if rank in ranks: row = g. The same with
  grid.T.tolist() for the columns. a, b = x.clone(), x.clone(); all_reduce a in row, b in column; return a, b.
"""

import torch

from helpers.checks.author import *
from helpers.exercises.nb01_process_groups.in_ranks import in_a_grid
from helpers.trace.events import Trace

BOTH_ARE_TOTALS = "Both are sums over all ranks: a group is said by `group=`."
SECOND_IS_TOTAL = (
    "The second sum is over all ranks: it began with the sums of the first, since all_reduce works in place "
    "(give each its own clone), or it was made without `group=`."
)
CHANGED = (
    "`x` itself has been changed, so a sum that was made of it afterwards began with the one before: make a "
    "clone of its own for each sum."
)
SWAPPED = "The two sums are right, but in the other order."


def case(draw: Draw) -> Case:
    n = draw.ranks
    rows = draw.of(*(rows for rows in range(1, n + 1) if n % rows == 0))
    cols = n // rows
    mine = draw.tensors(draw.shape(least=1), draw.dtype(*SUMMED))
    grid = torch.stack(mine).reshape(rows, cols, *mine[0].shape)
    total = grid.sum((0, 1))
    places = [divmod(rank, cols) for rank in range(n)]
    row, column = [grid[r].sum(0) for r, _ in places], [grid[:, c].sum(0) for _, c in places]

    def parts(rows: list[torch.Tensor], columns: list[torch.Tensor]) -> list[dict[str, object]]:
        return [
            {"pair": "", "row": a, "column": b, "x": ""} for a, b in zip(rows, columns, strict=True)
        ]

    right = ByName(parts(row, column), scale=sum(largest(x) for x in mine))
    both = list(zip(row, column, strict=True))
    return Case(
        f"{rows} x {cols}, {tuple(mine[0].shape)} of {mine[0].dtype}",
        [(rows, cols, x) for x in mine],
        right=right,
        mistakes=[
            right.mistake(BOTH_ARE_TOTALS, [{"row": total, "column": total}] * n),
            right.mistake(SECOND_IS_TOTAL, [{"column": total}] * n),
            Mistake(lambda got, rank: bool(got["x"]), CHANGED),
            right.mistake(SWAPPED, [{"row": b, "column": a} for a, b in both]),
            right.mistake(
                "These are means; sums are wanted.",
                [{"row": a / cols, "column": b / rows} for a, b in both],
            ),
            right.mistake(
                "These are the rank's own numbers: nothing has been added up.",
                [{"row": x, "column": x} for x in mine],
            ),
        ],
        facts={"rows": rows, "cols": cols},
    )


def reduced_once_each(trace: Trace, case: Case) -> str:
    """Say which rank did not reduce once in each of its groups. A group of one rank need not be reduced."""
    rows, cols = case.facts["rows"], case.facts["cols"]
    for rank in range(case.world_size):
        r, c = divmod(rank, cols)
        row, column = tuple(range(r * cols, (r + 1) * cols)), tuple(range(c, rows * cols, cols))
        used = sorted(e.group_ranks for e in trace.of(rank) if e.op == "all_reduce")
        wanted = sorted(group for group in (row, column) if len(group) > 1)
        if [group for group in used if len(group) > 1] != wanted:
            listed = " and ".join(map(str, map(list, used))) or "no group"
            return (
                f"rank {rank} calls all_reduce in {listed}; wanted is once in its row {list(row)} and "
                f"once in its column {list(column)}."
            )
    return ""


EXERCISE = Exercise(
    case,
    (
        Awaited(),
        OnlyCalls(("all_reduce",)),
        Holds(reduced_once_each, "one all_reduce in the row's group, one in the column's"),
    ),
    failed=(
        Failed(
            "^GroupsDiffer",
            "Make all groups in a loop that is the same on every rank; keep those you are in.",
        ),
    ),
    kind=Kind.MODULE,
    programme=in_a_grid,
    count=16,
    own_network=True,
)
