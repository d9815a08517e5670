# %% views are scattered
# These elements are consecutive in the memory of `x`: the parts passed to `scatter` are views. Print
# `is_contiguous()` of one; `.contiguous()` makes a copy.
def contiguous_first(rank, world_size, x, src):
    out = torch.empty(x.shape[0], x.shape[1] // world_size)
    dist.scatter(out, list(x.chunk(world_size, dim=1)) if rank == src else None, src=src)
    return out


# %% the box is a view's likeness
# The elements are right, but in another order: the tensor that receives is not contiguous.
# `torch.empty_like` keeps the memory order of a transposed tensor; use `torch.empty(rows, columns)`.
def contiguous_first(rank, world_size, x, src):
    columns = x.chunk(world_size, dim=1)
    out = torch.empty_like(columns[rank])
    parts = [part.contiguous() for part in columns] if rank == src else None
    dist.scatter(out, parts, src=src)
    return out


# %% only the whole matrix is made contiguous
# These elements are consecutive in the memory of `x`: the parts passed to `scatter` are views. Print
# `is_contiguous()` of one; `.contiguous()` makes a copy.
def contiguous_first(rank, world_size, x, src):
    x = x.contiguous()
    out = torch.empty(x.shape[0], x.shape[1] // world_size)
    dist.scatter(out, list(x.chunk(world_size, dim=1)) if rank == src else None, src=src)
    return out


# %% contiguous after the call
# These elements are consecutive in the memory of `x`: the parts passed to `scatter` are views. Print
# `is_contiguous()` of one; `.contiguous()` makes a copy.
def contiguous_first(rank, world_size, x, src):
    out = torch.empty(x.shape[0], x.shape[1] // world_size)
    dist.scatter(out, list(x.chunk(world_size, dim=1)) if rank == src else None, src=src)
    return out.contiguous()


# %% rows in place of columns
# These are consecutive rows. Cut along the columns: `x.chunk(world_size, dim=1)`.
def contiguous_first(rank, world_size, x, src):
    each = x.numel() // world_size
    flat = x.reshape(-1)
    out = torch.empty(each)
    dist.scatter(out, list(flat.split(each)) if rank == src else None, src=src)
    return out.reshape(x.shape[0], -1)


# %% one column for each rank
# Each rank gets a single column. It is to get `columns // world_size` of them.
def contiguous_first(rank, world_size, x, src):
    out = torch.empty(x.shape[0], 1)
    parts = [x[:, j : j + 1].contiguous() for j in range(world_size)] if rank == src else None
    dist.scatter(out, parts, src=src)
    return out


# %% cut along the rows | crashed
# `x.chunk(world_size)` cuts along the rows. Cut along the columns: `x.chunk(world_size, dim=1)`.
def contiguous_first(rank, world_size, x, src):
    parts = [part.contiguous() for part in x.chunk(world_size)] if rank == src else None
    out = torch.empty(x.shape[0] // world_size, x.shape[1])
    dist.scatter(out, parts, src=src)
    return out
