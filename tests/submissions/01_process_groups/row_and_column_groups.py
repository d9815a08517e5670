# %% right: all rows, then all columns
def row_and_column_groups(rank, world_size, rows, cols, x):
    grid = torch.arange(world_size).reshape(rows, cols)
    for ranks in grid.tolist():
        group = dist.new_group(ranks)
        if rank in ranks:
            row = group
    for ranks in grid.T.tolist():
        group = dist.new_group(ranks)
        if rank in ranks:
            column = group
    in_row, in_column = x.clone(), x.clone()
    dist.all_reduce(in_row, group=row)
    dist.all_reduce(in_column, group=column)
    return in_row, in_column


# %% right: columns first, chosen by index, the work async
def row_and_column_groups(rank, world_size, rows, cols, x):
    columns = [dist.new_group(list(range(c, world_size, cols))) for c in range(cols)]
    lines = [dist.new_group(list(range(r * cols, (r + 1) * cols))) for r in range(rows)]
    r, c = divmod(rank, cols)
    sums = [x.clone(), x.clone()]
    works = [
        dist.all_reduce(part, group=group, async_op=True)
        for part, group in zip(sums, (lines[r], columns[c]))
    ]
    for work in works:
        work.wait()
    return tuple(sums)


# %% right: a device mesh makes the groups
def row_and_column_groups(rank, world_size, rows, cols, x):
    from torch.distributed.device_mesh import init_device_mesh

    mesh = init_device_mesh("cpu", (rows, cols), mesh_dim_names=("down", "across"))
    sums = []
    for name in ("across", "down"):
        total = x.clone()
        dist.all_reduce(total, group=mesh.get_group(name))
        sums.append(total)
    return sums


# %% right: only members make a group, and say so
def row_and_column_groups(rank, world_size, rows, cols, x):
    r, c = divmod(rank, cols)
    sums = []
    for ranks in ([r * cols + i for i in range(cols)], [i * cols + c for i in range(rows)]):
        group = dist.new_group(ranks, use_local_synchronization=True)
        total = x.clone()
        dist.all_reduce(total, group=group)
        sums.append(total)
    return sums[0], sums[1]


# %% right: groups of one rank are left out
def row_and_column_groups(rank, world_size, rows, cols, x):
    def reduced(groups):
        total = x + 0
        made = [dist.new_group(ranks) for ranks in groups if len(ranks) > 1]
        mine = [g for g in made if g is not dist.GroupMember.NON_GROUP_MEMBER]
        if mine:
            dist.all_reduce(total, group=mine[0])
        return total

    grid = torch.arange(world_size).view(rows, cols)
    return reduced(grid.tolist()), reduced(grid.t().tolist())


# %% wrong: no groups at all, everything gathered | wrong | says: only all_reduce may be used
def row_and_column_groups(rank, world_size, rows, cols, x):
    parts = [torch.empty_like(x) for _ in range(world_size)]
    dist.all_gather(parts, x)
    grid = torch.stack(parts).reshape(rows, cols, -1)
    r, c = divmod(rank, cols)
    return grid[r].sum(0), grid[:, c].sum(0)


# %% wrong: all_reduce over the whole world, others masked out | wrong | says: wanted is once in its row
def row_and_column_groups(rank, world_size, rows, cols, x):
    r, c = divmod(rank, cols)
    everything = torch.zeros(world_size, *x.shape, dtype=x.dtype)
    everything[rank] = x
    dist.all_reduce(everything)
    grid = everything.reshape(rows, cols, *x.shape)
    return grid[r].sum(0), grid[:, c].sum(0)


# %% wrong: prints the sums | wrong | says: the function returns nothing
def row_and_column_groups(rank, world_size, rows, cols, x):
    grid = torch.arange(world_size).reshape(rows, cols)
    lines = [dist.new_group(ranks) for ranks in grid.tolist()]
    columns = [dist.new_group(ranks) for ranks in grid.T.tolist()]
    in_row, in_column = x.clone(), x.clone()
    dist.all_reduce(in_row, group=lines[rank // cols])
    dist.all_reduce(in_column, group=columns[rank % cols])
    print(in_row, in_column)


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
