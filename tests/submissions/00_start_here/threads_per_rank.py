# %% right: the larger of one and the share
def threads_per_rank(cores, ranks):
    return max(1, cores // ranks)


# %% right: with an if
def threads_per_rank(cores: int, ranks: int) -> int:
    if ranks >= cores:
        return 1
    return int(cores / ranks)


# %% right: counted up, as a tensor
def threads_per_rank(cores, ranks):
    threads = 1
    while (threads + 1) * ranks <= cores:
        threads += 1
    return torch.tensor(threads)


# %% right: or
def threads_per_rank(cores, ranks):
    return cores // ranks or 1


# %% wrong: none is left where ranks are many | wrong | says: less than one thread
def threads_per_rank(cores, ranks):
    return cores // ranks


# %% wrong: a fraction | wrong | says: divides without a fraction
def threads_per_rank(cores, ranks):
    return max(1, cores / ranks)


# %% wrong: rounded up | wrong | says: all ranks together have more threads than there are cores
def threads_per_rank(cores, ranks):
    return -(-cores // ranks)


# %% wrong: rounded to the nearest | wrong | says: all ranks together have more threads than there are cores
def threads_per_rank(cores, ranks):
    return max(1, round(cores / ranks))


# %% wrong: every rank takes all cores | wrong | says: all ranks together have more threads than there are cores
def threads_per_rank(cores, ranks):
    return cores


# %% wrong: divided the other way round | wrong | says: expected \d+, got \d
def threads_per_rank(cores, ranks):
    return max(1, ranks // cores)


# %% wrong: what is left over | wrong | says: This is what is left over
def threads_per_rank(cores, ranks):
    return max(1, cores % ranks)


# %% wrong: this machine's cores, whatever is asked | wrong | says: more threads than there are cores
import os


def threads_per_rank(cores, ranks):
    return max(1, 1000 * os.cpu_count() // ranks)


# %% wrong: printed, not returned | wrong | says: prints, but returns nothing
def threads_per_rank(cores, ranks):
    print(max(1, cores // ranks))


# %% wrong: always one thread | wrong | says: the largest number is wanted
def threads_per_rank(cores, ranks):
    return 1


# %% wrong: this machine's cores, with a torch call | wrong | says: the largest number is wanted
import os


def threads_per_rank(cores, ranks):
    return max(1, len(os.sched_getaffinity(0)) // ranks)
