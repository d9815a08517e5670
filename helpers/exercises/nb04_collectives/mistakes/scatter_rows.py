# %% chunks of different sizes | crashed
# All parts of a `scatter`, and `out` on every rank, have the same shape. Add rows of zeros on rank `src`
# until each part has `each` rows, and drop them afterwards.
def scatter_rows(rank, world_size, x, src):
    each = -(-len(x) // world_size)
    out = torch.empty(each, x.shape[1], dtype=x.dtype)
    dist.scatter(out, list(x.split(each)) if rank == src else None, src=src)
    return out


# %% the box has room for its own rows only | crashed
# All parts of a `scatter`, and `out` on every rank, have the same shape. Add rows of zeros on rank `src`
# until each part has `each` rows, and drop them afterwards.
def scatter_rows(rank, world_size, x, src):
    rows, columns = x.shape
    each = -(-rows // world_size)
    out = x.new_empty(len(x[rank * each : (rank + 1) * each]), columns)
    parts = None
    if rank == src:
        padded = torch.cat([x, x.new_zeros(each * world_size - rows, columns)])
        parts = list(padded.split(each))
    dist.scatter(out, parts, src=src)
    return out


# %% the padding stays
# The added rows are still there. Each rank drops the rows beyond the end of the matrix.
def scatter_rows(rank, world_size, x, src):
    rows, columns = x.shape
    each = -(-rows // world_size)
    out, parts = x.new_empty(each, columns), None
    if rank == src:
        padded = torch.cat([x, x.new_zeros(each * world_size - rows, columns)])
        parts = list(padded.split(each))
    dist.scatter(out, parts, src=src)
    return out


# %% rows that do not divide are dropped | crashed
# All parts of a `scatter`, and `out` on every rank, have the same shape. Add rows of zeros on rank `src`
# until each part has `each` rows, and drop them afterwards.
def scatter_rows(rank, world_size, x, src):
    each = len(x) // world_size
    out = torch.empty(each, x.shape[1], dtype=x.dtype)
    parts = list(x[: each * world_size].split(each)) if rank == src else None
    dist.scatter(out, parts, src=src)
    return out


# %% tensor_split's fair shares
# The rows are spread evenly, as `tensor_split` does. Here each rank gets {each} rows while there are enough
# left; the last ranks get fewer, or none.
def scatter_rows(rank, world_size, x, src):
    rows, columns = x.shape
    shares = [len(part) for part in x.tensor_split(world_size)]
    out, parts = x.new_empty(max(shares), columns), None
    if rank == src:
        parts = [x.new_zeros(max(shares), columns) for _ in shares]
        for part, mine in zip(parts, x.tensor_split(world_size)):
            part[: len(mine)] = mine
    dist.scatter(out, parts, src=src)
    return out[: shares[rank]]


# %% a negative end cuts from the back
# The end of the slice is negative on some ranks, and a negative end counts from the back. Use `max(0,
# ...)`.
def scatter_rows(rank, world_size, x, src):
    rows, columns = x.shape
    each = -(-rows // world_size)
    parts, out = None, x.new_empty(each, columns)
    if rank == src:
        padded = x.new_zeros(each * world_size, columns)
        padded[:rows] = x
        parts = list(padded.split(each))
    dist.scatter(out, parts, src=src)
    return out[: rows - rank * each]


# %% the same padding on the wrong side
# The rows of zeros come before the rows of `x`. Add them at the end.
def scatter_rows(rank, world_size, x, src):
    rows, columns = x.shape
    each = -(-rows // world_size)
    out, parts = x.new_empty(each, columns), None
    if rank == src:
        parts = list(torch.cat([x.new_zeros(each * world_size - rows, columns), x]).split(each))
    dist.scatter(out, parts, src=src)
    return out[: max(0, rows - rank * each)]


# %% rows of zeros taken for padding
# Rows of zeros were dropped, but `x` may have such rows itself. Count the real rows from `rank` and
# `len(x)`.
def scatter_rows(rank, world_size, x, src):
    rows, columns = x.shape
    each = -(-rows // world_size)
    parts, out = None, x.new_empty(each, columns)
    if rank == src:
        padded = x.new_zeros(each * world_size, columns)
        padded[:rows] = x
        parts = list(padded.split(each))
    dist.scatter(out, parts, src=src)
    return out[(out != 0).any(dim=1)]
