# %% right: divmod
def my_slice(rank, world_size, n):
    share, extra = divmod(n, world_size)
    start = rank * share + min(rank, extra)
    return start, start + share + (rank < extra)


# %% right: rounded boundaries, the extra elements spread
def my_slice(rank, world_size, n):
    return rank * n // world_size, (rank + 1) * n // world_size


# %% right: the last ranks take one more, by a loop, as a list
def length(rank, world_size, n):
    return n // world_size + (1 if rank >= world_size - n % world_size else 0)


def my_slice(rank, world_size, n):
    start = 0
    for before in range(rank):
        start += length(before, world_size, n)
    return [start, start + length(rank, world_size, n)]


# %% right: torch cuts, the ranks in reverse order
def my_slice(rank, world_size, n):
    parts = torch.arange(n).tensor_split(world_size)
    mine = parts[world_size - 1 - rank]
    return (int(mine[0]), int(mine[-1]) + 1) if len(mine) else (0, 0)


# %% wrong: rank 0 divides and scatters | forbidden call | says: none is needed
def my_slice(rank, world_size, n):
    bounds = [
        torch.tensor([r * n // world_size, (r + 1) * n // world_size]) for r in range(world_size)
    ]
    mine = torch.zeros(2, dtype=torch.int64)
    dist.scatter(mine, bounds if rank == 0 else None, src=0)
    return mine[0].item(), mine[1].item()


# %% wrong: only rank 0 answers, for all | wrong | says: nothing was returned
def my_slice(rank, world_size, n):
    if rank == 0:
        return [(r * n // world_size, (r + 1) * n // world_size) for r in range(world_size)]


# %% wrong: printed, not returned | wrong | says: prints, but returns nothing
def my_slice(rank, world_size, n):
    print(rank * n // world_size, (rank + 1) * n // world_size)


# %% right: bounds by accumulate
from itertools import accumulate


def my_slice(rank, world_size, n):
    lengths = [n // world_size + (r < n % world_size) for r in range(world_size)]
    bounds = [0, *accumulate(lengths)]
    return bounds[rank], bounds[rank + 1]


# %% wrong: an empty slice is turned round | wrong | says: an empty slice has start == stop
def my_slice(rank, world_size, n):
    start, stop = rank * n // world_size, (rank + 1) * n // world_size
    return (start, stop) if start < stop else (n, 0)
