# %% wrong: only the others wait | deadlocked | says: a line that only some ranks reach


# %% wrong: it tries until the file is there | wrong | says: rank 0 calls barrier 0 times; once is right


# %% right: an early return for rank 0, and a group named
def repair_rank0_only_barrier(rank, world_size, prepare, read):
    if rank == 0:
        prepare()
        dist.barrier(group=dist.group.WORLD)
        return read()
    dist.barrier(dist.group.WORLD)
    return read()


# %% wrong: the last rank prepares | wrong | says: prepared by rank
def repair_rank0_only_barrier(rank, world_size, prepare, read):
    if rank == world_size - 1:
        prepare()
    dist.barrier()
    return read()


# %% wrong: the barrier comes after reading | crashed | says: A rank read before rank 0 had prepared
def repair_rank0_only_barrier(rank, world_size, prepare, read):
    if rank == 0:
        prepare()
    content = read()
    dist.barrier()
    return content


# %% wrong: it sleeps, reads, and only then comes to the barrier | wrong | says: reads before it has passed the barrier
import os


def repair_rank0_only_barrier(rank, world_size, prepare, read):
    if rank == 0:
        prepare()
    else:
        for _ in range(20000):
            os.sched_yield()
        os.system("sleep 0.3")
    content = read()
    dist.barrier()
    return content


# %% wrong: only rank 0 reads | wrong | says: rank 1 reads 0 times; once is right
def repair_rank0_only_barrier(rank, world_size, prepare, read):
    if rank == 0:
        prepare()
    dist.barrier()
    return read() if rank == 0 else None


# %% wrong: prepare is not called, but named | crashed | says: FileNotFoundError
def repair_rank0_only_barrier(rank, world_size, prepare, read):
    if rank == 0:
        prepare
    dist.barrier()
    return read()


# %% wrong: an async barrier is left behind | crashed | says: A rank read before rank 0 had prepared
def repair_rank0_only_barrier(rank, world_size, prepare, read):
    if rank == 0:
        prepare()
    dist.barrier(async_op=True)
    return read()
