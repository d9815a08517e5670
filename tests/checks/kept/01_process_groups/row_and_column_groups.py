# %% wrong: the second sum begins with the first | wrong | says: make a clone of its own for each sum


# %% wrong: no groups at all, everything gathered | wrong | says: only all_reduce may be used


# %% wrong: divides by rows where cols is meant | crashed | says: IndexError


# %% wrong: the sums are averages | wrong | says: These are means; sums are wanted


# %% wrong: prints the sums | wrong | says: the function returns nothing


# %% right: names bound before, new_subgroups_by_enumeration
from torch.distributed import all_reduce, new_subgroups_by_enumeration


def row_and_column_groups(rank, world_size, rows, cols, x):
    grid = [[r * cols + c for c in range(cols)] for r in range(rows)]
    row, _ = new_subgroups_by_enumeration(grid)
    column, _ = new_subgroups_by_enumeration([list(line) for line in zip(*grid)])
    sums = torch.stack([x, x])
    all_reduce(sums[0], group=row)
    all_reduce(sums[1], group=column)
    return sums[0].clone(), sums[1].clone()


# %% wrong: clones, but no group is said | wrong | says: a group is said by `group=`
def row_and_column_groups(rank, world_size, rows, cols, x):
    in_row, in_column = x.clone(), x.clone()
    dist.all_reduce(in_row)
    dist.all_reduce(in_column)
    return in_row, in_column


# %% wrong: x itself is one of the sums | wrong | says: `x` itself has been changed
def row_and_column_groups(rank, world_size, rows, cols, x):
    grid = torch.arange(world_size).reshape(rows, cols)
    lines = [dist.new_group(ranks) for ranks in grid.tolist()]
    columns = [dist.new_group(ranks) for ranks in grid.T.tolist()]
    in_column = x.clone()
    dist.all_reduce(x, group=lines[rank // cols])
    dist.all_reduce(in_column, group=columns[rank % cols])
    return x, in_column


# %% wrong: sums through float32 | wrong | says: row: 
def row_and_column_groups(rank, world_size, rows, cols, x):
    grid = torch.arange(world_size).reshape(rows, cols)
    lines = [dist.new_group(ranks) for ranks in grid.tolist()]
    columns = [dist.new_group(ranks) for ranks in grid.T.tolist()]
    in_row, in_column = x.float(), x.float()
    dist.all_reduce(in_row, group=lines[rank // cols])
    dist.all_reduce(in_column, group=columns[rank % cols])
    return in_row.to(x.dtype), in_column.to(x.dtype)
