# %% wrong: rounded up | wrong | says: all ranks together have more threads than there are cores


# %% wrong: rounded to the nearest | wrong | says: all ranks together have more threads than there are cores


# %% wrong: every rank takes all cores | wrong | says: all ranks together have more threads than there are cores


# %% wrong: divided the other way round | wrong | says: expected \d+, got \d


# %% wrong: what is left over | wrong | says: This is what is left over


# %% wrong: always one thread | wrong | says: the largest number is wanted
def threads_per_rank(cores, ranks):
    return 1


# %% wrong: this machine's cores, with a torch call | wrong | says: is not \d
import os


def threads_per_rank(cores, ranks):
    return max(1, len(os.sched_getaffinity(0)) // ranks)
