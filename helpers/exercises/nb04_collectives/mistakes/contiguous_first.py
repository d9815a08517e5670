# %% views are scattered
# These elements lie one after the other in `x`'s memory: the parts that are handed in are views. Print
# `is_contiguous()` of one; `.contiguous()` makes a copy.
def contiguous_first(rank, world_size, x, src):
    out = torch.empty(x.shape[0], x.shape[1] // world_size)
    dist.scatter(out, list(x.chunk(world_size, dim=1)) if rank == src else None, src=src)
    return out


# %% the box is a view's likeness
# The right elements, read in another order: the tensor that receives is not contiguous. Print
# `is_contiguous()`; `torch.empty_like` and `clone()` keep the memory order of a transposed tensor.
def contiguous_first(rank, world_size, x, src):
    columns = x.chunk(world_size, dim=1)
    out = torch.empty_like(columns[rank])
    parts = [part.contiguous() for part in columns] if rank == src else None
    dist.scatter(out, parts, src=src)
    return out


# %% only the whole matrix is made contiguous
# These elements lie one after the other in `x`'s memory: the parts that are handed in are views. Print
# `is_contiguous()` of one; `.contiguous()` makes a copy.
def contiguous_first(rank, world_size, x, src):
    x = x.contiguous()
    out = torch.empty(x.shape[0], x.shape[1] // world_size)
    dist.scatter(out, list(x.chunk(world_size, dim=1)) if rank == src else None, src=src)
    return out


# %% contiguous after the call
# These elements lie one after the other in `x`'s memory: the parts that are handed in are views. Print
# `is_contiguous()` of one; `.contiguous()` makes a copy.
def contiguous_first(rank, world_size, x, src):
    out = torch.empty(x.shape[0], x.shape[1] // world_size)
    dist.scatter(out, list(x.chunk(world_size, dim=1)) if rank == src else None, src=src)
    return out.contiguous()


# %% rows in place of columns
# This is a stretch of rows: cut along the columns, `x.chunk(world_size, dim=1)`.
def contiguous_first(rank, world_size, x, src):
    each = x.numel() // world_size
    flat = x.reshape(-1)
    out = torch.empty(each)
    dist.scatter(out, list(flat.split(each)) if rank == src else None, src=src)
    return out.reshape(x.shape[0], -1)


# %% the list on every rank | crashed
# The list of parts is given on rank `src` only; the others give None.
def contiguous_first(rank, world_size, x, src):
    parts = [part.contiguous() for part in x.chunk(world_size, dim=1)]
    out = torch.empty(x.shape[0], x.shape[1] // world_size)
    dist.scatter(out, parts, src=src)
    return out
