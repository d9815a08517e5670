# %% what is left over is lost
# `n // world_size` leaves some elements over: as many ranks must take one more.
def my_slice(rank, world_size, n):
    share = n // world_size
    return rank * share, (rank + 1) * share


# %% the last rank takes all that is left over
# `n // world_size` leaves some elements over: spread them, one each, over as many ranks.
def my_slice(rank, world_size, n):
    share = n // world_size
    stop = n if rank == world_size - 1 else (rank + 1) * share
    return rank * share, stop


# %% rounded up, so that the last rank gets little
# A share that is rounded up leaves little for the last ranks: round down, and spread what is left over.
def my_slice(rank, world_size, n):
    share = -(-n // world_size)
    return min(rank * share, n), min((rank + 1) * share, n)


# %% rounded up and not cut off
# A share that is rounded up leaves little for the last ranks: round down, and spread what is left over.
def my_slice(rank, world_size, n):
    share = -(-n // world_size)
    return rank * share, (rank + 1) * share


# %% one more for some, but the start forgets it
# A rank starts after all elements of the ranks before it, also those that they take in addition.
def my_slice(rank, world_size, n):
    share, extra = divmod(n, world_size)
    start = rank * share
    return start, start + share + (rank < extra)


# %% stop is the last element
# `stop` itself is not included, as in `x[start:stop]`: it is one past the last element.
def my_slice(rank, world_size, n):
    return rank * n // world_size, (rank + 1) * n // world_size - 1


# %% start and length
# This is start and length. Wanted are start and stop.
def my_slice(rank, world_size, n):
    start = rank * n // world_size
    return start, (rank + 1) * n // world_size - start


# %% everybody takes everything
# Every rank takes everything: which part is this rank's own?
def my_slice(rank, world_size, n):
    return 0, n
