# %% the remainder is lost
# Every slice has `n // world_size` elements, so the last `n % world_size` elements are in no slice.
def my_slice(rank, world_size, n):
    share = n // world_size
    return rank * share, (rank + 1) * share


# %% the last rank takes the whole remainder
# The last rank takes the whole remainder. Spread it: let `n % world_size` ranks take one more element each.
def my_slice(rank, world_size, n):
    share = n // world_size
    stop = n if rank == world_size - 1 else (rank + 1) * share
    return rank * share, stop


# %% rank 0 takes the whole remainder
# Rank 0 takes the whole remainder. Spread it: let `n % world_size` ranks take one more element each.
def my_slice(rank, world_size, n):
    share, extra = divmod(n, world_size)
    start = 0 if rank == 0 else rank * share + extra
    return start, (rank + 1) * share + extra


# %% rounded up, so that the last rank gets little
# The share is rounded up, so little or nothing is left for the last ranks. Round down, then let
# `n % world_size` ranks take one more element each.
def my_slice(rank, world_size, n):
    share = -(-n // world_size)
    return min(rank * share, n), min((rank + 1) * share, n)


# %% rounded up, start not cut off
# The share is rounded up, so little or nothing is left for the last ranks. Round down, then let
# `n % world_size` ranks take one more element each.
def my_slice(rank, world_size, n):
    share = -(-n // world_size)
    return rank * share, min((rank + 1) * share, n)


# %% rounded up and not cut off
# The share is rounded up, so little or nothing is left for the last ranks. Round down, then let
# `n % world_size` ranks take one more element each.
def my_slice(rank, world_size, n):
    share = -(-n // world_size)
    return rank * share, (rank + 1) * share


# %% rounded to the nearest share
# The share is rounded to the nearest integer: the slices then reach beyond `n`, or the last one is longer
# or shorter than the others. Round down, then let `n % world_size` ranks take one more element each.
def my_slice(rank, world_size, n):
    share = round(n / world_size)
    return min(rank * share, n), n if rank == world_size - 1 else min((rank + 1) * share, n)


# %% floats lose an element
# `n / world_size` is a float and is rounded; multiplied by a rank it can end just below a whole number.
# Stay with integers: `//` and `%`, or `rank * n // world_size`.
def my_slice(rank, world_size, n):
    return int(n / world_size * rank), int(n / world_size * (rank + 1))


# %% one more for some, but the start ignores it
# `start` ignores the additional elements of the ranks before: each rank before that took one moves `start`
# by one.
def my_slice(rank, world_size, n):
    share, extra = divmod(n, world_size)
    start = rank * share
    return start, start + share + (rank < extra)


# %% start moved, stop not
# `stop` is this rank's `start` plus the length of its slice, which includes the additional element.
def my_slice(rank, world_size, n):
    share, extra = divmod(n, world_size)
    start = rank * share + min(rank, extra)
    return start, start + share


# %% stop is the last element, boundaries rounded
# `stop` is one past the last element, as in `x[start:stop]`. Here it is the last element itself.
def my_slice(rank, world_size, n):
    return rank * n // world_size, (rank + 1) * n // world_size - 1


# %% stop is the last element, first ranks longer
# `stop` is one past the last element, as in `x[start:stop]`. Here it is the last element itself.
def my_slice(rank, world_size, n):
    share, extra = divmod(n, world_size)
    start = rank * share + min(rank, extra)
    return start, start + share + (rank < extra) - 1


# %% start and length, boundaries rounded
# The second number is the length of the slice. Return `start` and `stop`.
def my_slice(rank, world_size, n):
    start = rank * n // world_size
    return start, (rank + 1) * n // world_size - start


# %% start and length, first ranks longer
# The second number is the length of the slice. Return `start` and `stop`.
def my_slice(rank, world_size, n):
    share, extra = divmod(n, world_size)
    return rank * share + min(rank, extra), share + (rank < extra)


# %% every rank takes everything
# Every rank takes all `n` elements. Let `rank` decide which part is this rank's own.
def my_slice(rank, world_size, n):
    return 0, n


# %% a fraction
# `/` gives a float. Slices need whole numbers: divide with `//`.
def my_slice(rank, world_size, n):
    return rank * n / world_size, (rank + 1) * n / world_size


# %% every world_size-th element
# These are the bounds of a strided selection, `x[rank::world_size]`. A slice here is contiguous.
def my_slice(rank, world_size, n):
    return min(rank, n), n


# %% an empty share has no first element | crashed
# An empty share has no first and no last element. With fewer elements than ranks, some slices are empty:
# compute the bounds from `rank`, `world_size` and `n`.
def my_slice(rank, world_size, n):
    mine = torch.arange(n).tensor_split(world_size)[rank]
    return mine[0].item(), mine[-1].item() + 1
