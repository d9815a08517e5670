# %% zero where there are more ranks than cores
# With more ranks than cores this is 0. A rank needs at least one thread.
def threads_per_rank(cores, ranks):
    return cores // ranks


# %% a fraction
# `/` gives a fraction. A number of threads is whole: divide with `//`.
def threads_per_rank(cores, ranks):
    return max(1, cores / ranks)


# %% rounded up
# The quotient is rounded up, so all ranks together run more threads than there are cores.
def threads_per_rank(cores, ranks):
    return -(-cores // ranks)


# %% rounded to the nearest
# The quotient is rounded to the nearest integer. Where it is rounded up, all ranks together run more
# threads than there are cores. Round down.
def threads_per_rank(cores, ranks):
    return max(1, round(cores / ranks))


# %% every rank takes all cores
# Every rank gets as many threads as there are cores. All ranks share the cores.
def threads_per_rank(cores, ranks):
    return cores


# %% the remainder
# `%` gives the remainder of the division. You need the quotient, `//`.
def threads_per_rank(cores, ranks):
    return max(1, cores % ranks)


# %% a core kept free
# One core is kept free: where `cores` is a multiple of `ranks`, every rank gets one thread too few.
def threads_per_rank(cores, ranks):
    return max(1, (cores - 1) // ranks)


# %% one thread more than the share
# Each rank gets one thread too many: all ranks together then run more threads than there are cores.
def threads_per_rank(cores, ranks):
    return cores // ranks + 1


# %% always one thread
# One thread for each rank leaves cores idle. Return the largest number that fits.
def threads_per_rank(cores, ranks):
    return 1


# %% divided the wrong way round
# The division is the wrong way round: divide the cores by the ranks.
def threads_per_rank(cores, ranks):
    return ranks // cores
