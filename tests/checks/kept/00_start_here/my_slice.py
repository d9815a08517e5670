# %% wrong: rounded up and not cut off | wrong | says: A share that is rounded up leaves little


# %% wrong: what is left over is lost | wrong | says: leaves some elements over: as many ranks


# %% right: bounds by accumulate
from itertools import accumulate


def my_slice(rank, world_size, n):
    lengths = [n // world_size + (r < n % world_size) for r in range(world_size)]
    bounds = [0, *accumulate(lengths)]
    return bounds[rank], bounds[rank + 1]


# %% wrong: rounded to the nearest share | wrong | says: The slices: rank 0
def my_slice(rank, world_size, n):
    share = round(n / world_size)
    return min(rank * share, n), n if rank == world_size - 1 else min((rank + 1) * share, n)


# %% wrong: an empty slice is turned round | wrong | says: an empty slice has start == stop
def my_slice(rank, world_size, n):
    start, stop = rank * n // world_size, (rank + 1) * n // world_size
    return (start, stop) if start < stop else (n, 0)
