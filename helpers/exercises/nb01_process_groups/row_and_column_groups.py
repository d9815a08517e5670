"""1.4 Row and column groups (20 min, ●●●○○)

- There are `rows + cols` groups. Every rank calls `new_group` for each of them, even without being a member,
  and then uses the two groups that it is in.
- Lay the ranks out as `torch.arange(world_size).reshape(rows, cols)`. Loop over its rows, then over its
  columns, keeping the group if `rank` is in the list. Reduce clones of `x`.
- for ranks in grid.tolist(): g = dist.new_group(ranks); if rank in ranks: row = g. Do the same with
  grid.T.tolist() for the columns. a, b = x.clone(), x.clone(); all_reduce a in row, b in column; return a, b.
"""

import torch

from helpers.checks.author import *
from helpers.exercises.nb01_process_groups.in_ranks import run_in_grid
from helpers.exercises.shared.crash_advice import GROUP_AS_OP


def case(draw: Draw) -> Case:
    n = draw.ranks
    # 2 x 3 and 3 x 2 reveal more mistakes than a line or a square, so every grid of 6 or more ranks is of
    # this kind
    grids = [rows for rows in range(2, n) if n % rows == 0]
    rows = draw.of(*grids) if n > 4 else draw.of(1, n, *2 * grids)
    cols = n // rows
    mine = draw.tensors(draw.shape(least=1), draw.dtype(*SUMMED))
    grid = torch.stack(mine).reshape(rows, cols, *mine[0].shape)
    places = [divmod(rank, cols) for rank in range(n)]
    row, column = [grid[r].sum(0) for r, _ in places], [grid[:, c].sum(0) for _, c in places]

    right = [{"pair": "", "row": a, "column": b, "x": ""} for a, b in zip(row, column, strict=True)]
    return Case(
        f"{rows} x {cols}, {tuple(mine[0].shape)} of {mine[0].dtype}",
        [(rows, cols, x) for x in mine],
        right=NamedParts(right, scale=sum(largest(x) for x in mine)),
        facts={"rows": rows, "cols": cols},
        telling=min(rows, cols) > 1,  # in a line, one of the two groups has only one rank
    )


def find_wrong_reductions(trace: Trace, case: Case) -> str:
    """Return the rank that did not reduce once in each of its groups. A group of one rank is optional."""
    rows, cols = case.facts["rows"], case.facts["cols"]
    for rank in range(case.world_size):
        r, c = divmod(rank, cols)
        row, column = tuple(range(r * cols, (r + 1) * cols)), tuple(range(c, rows * cols, cols))
        used = sorted(e.group_ranks for e in trace.of(rank) if e.op == "all_reduce")
        wanted = sorted(group for group in (row, column) if len(group) > 1)
        if [group for group in used if len(group) > 1] != wanted:
            listed = " and ".join(map(str, map(list, used))) or "no group"
            return (
                f"rank {rank} calls all_reduce in {listed}; expected: once in its row {list(row)} and once "
                f"in its column {list(column)}."
            )
    return ""


EXERCISE = Exercise(
    case,
    (
        WaitsForAll(),
        OnlyCalls(("all_reduce",)),
        Predicate(
            find_wrong_reductions, "one all_reduce in the row's group and one in the column's"
        ),
    ),
    failed=(GROUP_AS_OP,),
    kind=Kind.MODULE,
    driver=run_in_grid,
    sizes=(1, 2, 4, 6, 8),
    count=16,
    reported=("pair", "x"),
)
