# %% every rank makes its own groups only | crashed
# The ranks do not make the same groups in the same order. Every rank must call `new_group` for all `rows +
# cols` groups, also for those that it is not in, and then use its two.
def row_and_column_groups(rank, world_size, rows, cols, x):
    r, c = divmod(rank, cols)
    row = dist.new_group([r * cols + i for i in range(cols)])
    column = dist.new_group([i * cols + c for i in range(rows)])
    in_row, in_column = x.clone(), x.clone()
    dist.all_reduce(in_row, group=row)
    dist.all_reduce(in_column, group=column)
    return in_row, in_column


# %% new_group only where the rank is a member | crashed
# The ranks do not make the same groups in the same order. Every rank must call `new_group` for all `rows +
# cols` groups, also for those that it is not in, and then use its two.
def row_and_column_groups(rank, world_size, rows, cols, x):
    grid = torch.arange(world_size).reshape(rows, cols)
    mine = [dist.new_group(ranks) for ranks in [*grid.tolist(), *grid.T.tolist()] if rank in ranks]
    in_row, in_column = x.clone(), x.clone()
    dist.all_reduce(in_row, group=mine[0])
    dist.all_reduce(in_column, group=mine[1])
    return in_row, in_column


# %% each rank begins with its own groups | crashed
# The ranks do not make the same groups in the same order. Every rank must call `new_group` for all `rows +
# cols` groups, also for those that it is not in, and then use its two.
def row_and_column_groups(rank, world_size, rows, cols, x):
    grid = torch.arange(world_size).reshape(rows, cols)
    lists = [*grid.tolist(), *grid.T.tolist()]
    lists.sort(key=lambda ranks: rank not in ranks)
    groups = [dist.new_group(ranks) for ranks in lists]
    in_row, in_column = x.clone(), x.clone()
    dist.all_reduce(in_row, group=groups[0])
    dist.all_reduce(in_column, group=groups[1])
    return in_row, in_column


# %% rank 0 alone makes the groups | crashed
# The ranks do not make the same groups in the same order. Every rank must call `new_group` for all `rows +
# cols` groups, also for those that it is not in, and then use its two.
def row_and_column_groups(rank, world_size, rows, cols, x):
    if rank == 0:
        for ranks in torch.arange(world_size).reshape(rows, cols).tolist():
            dist.new_group(ranks)
    return x, x


# %% rank 0 thinks that it needs no column | crashed
# The ranks do not make the same groups in the same order. Every rank must call `new_group` for all `rows +
# cols` groups, also for those that it is not in, and then use its two.
def row_and_column_groups(rank, world_size, rows, cols, x):
    grid = torch.arange(world_size).reshape(rows, cols)
    lines = [dist.new_group(ranks) for ranks in grid.tolist()]
    in_row, in_column = x.clone(), x.clone()
    dist.all_reduce(in_row, group=lines[rank // cols])
    if rank == 0:
        return in_row, in_column
    columns = [dist.new_group(ranks) for ranks in grid.T.tolist()]
    dist.all_reduce(in_column, group=columns[rank % cols])
    return in_row, in_column


# %% the second sum begins with the first
# The second sum starts from the first one, because `x` was changed by it. Make a separate clone of `x` for
# each sum.
def row_and_column_groups(rank, world_size, rows, cols, x):
    grid = torch.arange(world_size).reshape(rows, cols)
    lines = [dist.new_group(ranks) for ranks in grid.tolist()]
    columns = [dist.new_group(ranks) for ranks in grid.T.tolist()]
    dist.all_reduce(x, group=lines[rank // cols])
    in_row = x.clone()
    dist.all_reduce(x, group=columns[rank % cols])
    return in_row, x


# %% row and column are swapped
# The two sums are right, but swapped: the row's sum comes first.
def row_and_column_groups(rank, world_size, rows, cols, x):
    grid = torch.arange(world_size).reshape(rows, cols)
    lines = [dist.new_group(ranks) for ranks in grid.tolist()]
    columns = [dist.new_group(ranks) for ranks in grid.T.tolist()]
    in_row, in_column = x.clone(), x.clone()
    dist.all_reduce(in_row, group=lines[rank // cols])
    dist.all_reduce(in_column, group=columns[rank % cols])
    return in_column, in_row


# %% the sums are averages
# These are the means over the row and the column. Return the sums.
def row_and_column_groups(rank, world_size, rows, cols, x):
    grid = torch.arange(world_size).reshape(rows, cols)
    lines = [dist.new_group(ranks) for ranks in grid.tolist()]
    columns = [dist.new_group(ranks) for ranks in grid.T.tolist()]
    in_row, in_column = x.clone(), x.clone()
    dist.all_reduce(in_row, group=lines[rank // cols])
    dist.all_reduce(in_column, group=columns[rank % cols])
    return in_row / cols, in_column / rows


# %% x itself is one of the sums
# The row's sum was computed in `x` itself, which must stay as it is. Reduce a clone.
def row_and_column_groups(rank, world_size, rows, cols, x):
    grid = torch.arange(world_size).reshape(rows, cols)
    lines = [dist.new_group(ranks) for ranks in grid.tolist()]
    columns = [dist.new_group(ranks) for ranks in grid.T.tolist()]
    in_column = x.clone()
    dist.all_reduce(x, group=lines[rank // cols])
    dist.all_reduce(in_column, group=columns[rank % cols])
    return x, in_column


# %% groups are made, but not used
# Both sums are over all ranks. Pass the group to `all_reduce`: `group=`.
def row_and_column_groups(rank, world_size, rows, cols, x):
    grid = torch.arange(world_size).reshape(rows, cols)
    for ranks in [*grid.tolist(), *grid.T.tolist()]:
        dist.new_group(ranks)
    in_row, in_column = x.clone(), x.clone()
    dist.all_reduce(in_row)
    dist.all_reduce(in_column)
    return in_row, in_column


# %% sums in float32
# The sums are float32, but `x` has another dtype. Clone `x` without converting it.
def row_and_column_groups(rank, world_size, rows, cols, x):
    grid = torch.arange(world_size).reshape(rows, cols)
    lines = [dist.new_group(ranks) for ranks in grid.tolist()]
    columns = [dist.new_group(ranks) for ranks in grid.T.tolist()]
    in_row, in_column = x.clone().float(), x.clone().float()
    dist.all_reduce(in_row, group=lines[rank // cols])
    dist.all_reduce(in_column, group=columns[rank % cols])
    return in_row, in_column


# %% sums by way of float32
# The sums were computed in float32, which is less exact than the dtype of `x`. Clone `x` without converting
# it.
def row_and_column_groups(rank, world_size, rows, cols, x):
    grid = torch.arange(world_size).reshape(rows, cols)
    lines = [dist.new_group(ranks) for ranks in grid.tolist()]
    columns = [dist.new_group(ranks) for ranks in grid.T.tolist()]
    in_row, in_column = x.clone().float(), x.clone().float()
    dist.all_reduce(in_row, group=lines[rank // cols])
    dist.all_reduce(in_column, group=columns[rank % cols])
    return in_row.to(x.dtype), in_column.to(x.dtype)


# %% rows and columns confused in the list of a row | crashed
# In a row's list of ranks, row r begins at `r * cols`, because a row has `cols` ranks.
def row_and_column_groups(rank, world_size, rows, cols, x):
    lines = [dist.new_group([i * rows + j for j in range(cols)]) for i in range(rows)]
    columns = [dist.new_group([i * cols + j for i in range(rows)]) for j in range(cols)]
    in_row, in_column = x.clone(), x.clone()
    dist.all_reduce(in_row, group=lines[rank // cols])
    dist.all_reduce(in_column, group=columns[rank % cols])
    return in_row, in_column


# %% the column's number modulo rows | crashed
# A rank is in column `rank % cols`: a row has `cols` ranks.
def row_and_column_groups(rank, world_size, rows, cols, x):
    lines = [dist.new_group(list(range(r * cols, (r + 1) * cols))) for r in range(rows)]
    columns = [dist.new_group(list(range(c, world_size, cols))) for c in range(cols)]
    in_row, in_column = x.clone(), x.clone()
    dist.all_reduce(in_row, group=lines[rank // cols])
    dist.all_reduce(in_column, group=columns[rank % rows])
    return in_row, in_column
