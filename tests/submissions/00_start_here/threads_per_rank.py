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


# %% wrong: printed, not returned | wrong | says: prints, but returns nothing
def threads_per_rank(cores, ranks):
    print(max(1, cores // ranks))


# %% wrong: this machine's cores, whatever is asked | wrong | says: expected \d+, got \d
import os


def threads_per_rank(cores, ranks):
    return max(1, len(os.sched_getaffinity(0)) // ranks)


# %% wrong: divided the other way round | wrong | says: expected \d+, got \d
def threads_per_rank(cores, ranks):
    return max(1, ranks // cores)
