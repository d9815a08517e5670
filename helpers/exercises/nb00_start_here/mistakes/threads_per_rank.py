# %% none is left where ranks are many
# No rank can work with less than one thread.
def threads_per_rank(cores, ranks):
    return cores // ranks


# %% a fraction
# A number of threads is whole: `//` divides without a fraction.
def threads_per_rank(cores, ranks):
    return max(1, cores / ranks)


# %% rounded up
# With so many threads each, all ranks together have more threads than there are cores.
def threads_per_rank(cores, ranks):
    return -(-cores // ranks)


# %% rounded to the nearest
# With so many threads each, all ranks together have more threads than there are cores.
def threads_per_rank(cores, ranks):
    return max(1, round(cores / ranks))


# %% every rank takes all cores
# With so many threads each, all ranks together have more threads than there are cores.
def threads_per_rank(cores, ranks):
    return cores


# %% what is left over
# This is what is left over when the cores are divided; the quotient is wanted.
def threads_per_rank(cores, ranks):
    return max(1, cores % ranks)


# %% this machine's cores, whatever is asked
# With so many threads each, all ranks together have more threads than there are cores.
import os


def threads_per_rank(cores, ranks):
    return max(1, 1000 * os.cpu_count() // ranks)


# %% always one thread
# Each rank may have more threads than that: the largest number is wanted.
def threads_per_rank(cores, ranks):
    return 1


# %% this machine's cores, with a torch call
# Each rank may have more threads than that: the largest number is wanted.
import os


def threads_per_rank(cores, ranks):
    return max(1, len(os.sched_getaffinity(0)) // ranks)
