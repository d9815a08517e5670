# %% chunks of different sizes | crashed
# All parts of one scatter have the same shape, and so has each rank's `out`. {rows} rows for {n} ranks:
# {each} rows each, so add rows of zeros on `src` and drop them after.
def scatter_rows(rank, world_size, x, src):
    each = -(-len(x) // world_size)
    out = torch.empty(each, x.shape[1], dtype=x.dtype)
    dist.scatter(out, list(x.split(each)) if rank == src else None, src=src)
    return out


# %% the box has room for its own rows only | crashed
# All parts of one scatter have the same shape, and so has each rank's `out`. {rows} rows for {n} ranks:
# {each} rows each, so add rows of zeros on `src` and drop them after.
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
# Added rows are still there: each rank drops those beyond the end of the matrix.
def scatter_rows(rank, world_size, x, src):
    rows, columns = x.shape
    each = -(-rows // world_size)
    out, parts = x.new_empty(each, columns), None
    if rank == src:
        padded = torch.cat([x, x.new_zeros(each * world_size - rows, columns)])
        parts = list(padded.split(each))
    dist.scatter(out, parts, src=src)
    return out


# %% the list on every rank | crashed
# The list of parts is given on rank `src` only; the others give None.
def scatter_rows(rank, world_size, x, src):
    rows, columns = x.shape
    each = -(-rows // world_size)
    padded = torch.cat([x, x.new_zeros(each * world_size - rows, columns)])
    out = x.new_empty(each, columns)
    dist.scatter(out, list(padded.split(each)), src=src)
    return out[: max(0, rows - rank * each)]


# %% rows that do not divide are dropped | crashed
# All parts of one scatter have the same shape, and so has each rank's `out`. {rows} rows for {n} ranks:
# {each} rows each, so add rows of zeros on `src` and drop them after.
def scatter_rows(rank, world_size, x, src):
    each = len(x) // world_size
    out = torch.empty(each, x.shape[1], dtype=x.dtype)
    parts = list(x[: each * world_size].split(each)) if rank == src else None
    dist.scatter(out, parts, src=src)
    return out


# %% tensor_split's fair shares
# These are fair shares. Here every rank gets {each} rows while there are some, the last ones less.
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
# Is the end of a slice negative there? Such an end counts from the back: take max(0, ...).
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
