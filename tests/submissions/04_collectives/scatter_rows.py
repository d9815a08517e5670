# %% right: padded with zeros
def scatter_rows(rank, world_size, x, src):
    rows, columns = x.shape
    each = -(-rows // world_size)
    parts, out = None, x.new_empty(each, columns)
    if rank == src:
        padded = x.new_zeros(each * world_size, columns)
        padded[:rows] = x
        parts = list(padded.split(each))
    dist.scatter(out, parts, src=src)
    return out[: max(0, rows - rank * each)]


# %% right: torch's own padding, slices in a comprehension
import math

from torch.nn.functional import pad


def scatter_rows(rank, world_size, x, src):
    each = math.ceil(len(x) / world_size)
    out = torch.zeros((each, x.size(1)), dtype=x.dtype)
    if dist.get_rank() == src:
        full = pad(x, (0, 0, 0, each * world_size - len(x)))
        dist.scatter(out, [full[i * each : (i + 1) * each] for i in range(world_size)], src)
    else:
        dist.scatter(out, src=src)
    mine = min(max(len(x) - rank * each, 0), each)
    return out[:mine].clone()


# %% right: each part padded by itself, without waiting
def part_of(x, i, each):
    part = torch.zeros(each, x.shape[1], dtype=x.dtype)
    rows = x[i * each : (i + 1) * each]
    part[: len(rows)] = rows
    return part


def scatter_rows(rank, world_size, x, src):
    n = x.shape[0]
    each = (n + world_size - 1) // world_size
    box = torch.empty(each, x.shape[1], dtype=x.dtype)
    parts = [part_of(x, i, each) for i in range(world_size)] if rank == src else []
    dist.scatter(box, parts, src=src, async_op=True).wait()
    return box[: len(range(n)[rank * each : (rank + 1) * each])]


# %% wrong: a broadcast and a slice | forbidden call | says: only scatter may be used
def scatter_rows(rank, world_size, x, src):
    each = -(-len(x) // world_size)
    dist.broadcast(x, src=src)
    return x[rank * each : (rank + 1) * each]


# %% wrong: everybody gets everything | wrong | says: Each rank needs its rows only
def scatter_rows(rank, world_size, x, src):
    each = -(-len(x) // world_size)
    out = torch.empty_like(x)
    dist.scatter(out, [x] * world_size if rank == src else None, src=src)
    return out[rank * each : (rank + 1) * each]


# %% wrong: always from rank 0 | wrong | says: names rank 0
def scatter_rows(rank, world_size, x, src):
    rows, columns = x.shape
    each = -(-rows // world_size)
    out, parts = x.new_empty(each, columns), None
    if rank == 0:
        parts = list(torch.cat([x, x.new_zeros(each * world_size - rows, columns)]).split(each))
    dist.scatter(out, parts, src=0)
    return out[: max(0, rows - rank * each)]


# %% wrong: printed, not returned | wrong | says: prints, but returns nothing
def scatter_rows(rank, world_size, x, src):
    rows, columns = x.shape
    each = -(-rows // world_size)
    out, parts = x.new_empty(each, columns), None
    if rank == src:
        parts = list(torch.cat([x, x.new_zeros(each * world_size - rows, columns)]).split(each))
    dist.scatter(out, parts, src=src)
    print(out[: max(0, rows - rank * each)])


# %% wrong: the list on every rank | crashed | says: Only rank `src` passes
def scatter_rows(rank, world_size, x, src):
    rows, columns = x.shape
    each = -(-rows // world_size)
    padded = torch.cat([x, x.new_zeros(each * world_size - rows, columns)])
    out = x.new_empty(each, columns)
    dist.scatter(out, list(padded.split(each)), src=src)
    return out[: max(0, rows - rank * each)]
