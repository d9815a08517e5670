# %% every rank makes its own groups only | crashed
# Make all groups in a loop that is the same on every rank; keep those you are in.
def row_and_column_groups(rank, world_size, rows, cols, x):
    r, c = divmod(rank, cols)
    row = dist.new_group([r * cols + i for i in range(cols)])
    column = dist.new_group([i * cols + c for i in range(rows)])
    in_row, in_column = x.clone(), x.clone()
    dist.all_reduce(in_row, group=row)
    dist.all_reduce(in_column, group=column)
    return in_row, in_column


# %% new_group only where the rank is a member | crashed
# Make all groups in a loop that is the same on every rank; keep those you are in.
def row_and_column_groups(rank, world_size, rows, cols, x):
    grid = torch.arange(world_size).reshape(rows, cols)
    mine = [dist.new_group(ranks) for ranks in [*grid.tolist(), *grid.T.tolist()] if rank in ranks]
    in_row, in_column = x.clone(), x.clone()
    dist.all_reduce(in_row, group=mine[0])
    dist.all_reduce(in_column, group=mine[1])
    return in_row, in_column


# %% each rank begins with its own groups | crashed
# Make all groups in a loop that is the same on every rank; keep those you are in.
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
# Make all groups in a loop that is the same on every rank; keep those you are in.
def row_and_column_groups(rank, world_size, rows, cols, x):
    if rank == 0:
        for ranks in torch.arange(world_size).reshape(rows, cols).tolist():
            dist.new_group(ranks)
    return x, x


# %% rank 0 thinks that it needs no column | crashed
# Make all groups in a loop that is the same on every rank; keep those you are in.
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
# `x` itself has been changed, so a sum that was made of it afterwards began with the one before: make a
# clone of its own for each sum.
def row_and_column_groups(rank, world_size, rows, cols, x):
    grid = torch.arange(world_size).reshape(rows, cols)
    lines = [dist.new_group(ranks) for ranks in grid.tolist()]
    columns = [dist.new_group(ranks) for ranks in grid.T.tolist()]
    dist.all_reduce(x, group=lines[rank // cols])
    in_row = x.clone()
    dist.all_reduce(x, group=columns[rank % cols])
    return in_row, x


# %% row and column are swapped
# The two sums are right, but in the other order.
def row_and_column_groups(rank, world_size, rows, cols, x):
    grid = torch.arange(world_size).reshape(rows, cols)
    lines = [dist.new_group(ranks) for ranks in grid.tolist()]
    columns = [dist.new_group(ranks) for ranks in grid.T.tolist()]
    in_row, in_column = x.clone(), x.clone()
    dist.all_reduce(in_row, group=lines[rank // cols])
    dist.all_reduce(in_column, group=columns[rank % cols])
    return in_column, in_row


# %% the sums are averages
# These are means; sums are wanted.
def row_and_column_groups(rank, world_size, rows, cols, x):
    grid = torch.arange(world_size).reshape(rows, cols)
    lines = [dist.new_group(ranks) for ranks in grid.tolist()]
    columns = [dist.new_group(ranks) for ranks in grid.T.tolist()]
    in_row, in_column = x.clone(), x.clone()
    dist.all_reduce(in_row, group=lines[rank // cols])
    dist.all_reduce(in_column, group=columns[rank % cols])
    return in_row / cols, in_column / rows


# %% x itself is one of the sums
# `x` itself has been changed, so a sum that was made of it afterwards began with the one before: make a
# clone of its own for each sum.
def row_and_column_groups(rank, world_size, rows, cols, x):
    grid = torch.arange(world_size).reshape(rows, cols)
    lines = [dist.new_group(ranks) for ranks in grid.tolist()]
    columns = [dist.new_group(ranks) for ranks in grid.T.tolist()]
    in_column = x.clone()
    dist.all_reduce(x, group=lines[rank // cols])
    dist.all_reduce(in_column, group=columns[rank % cols])
    return x, in_column
