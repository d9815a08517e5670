# %% right: prepare, barrier, read
def repair_rank0_only_barrier(rank, world_size, prepare, read):
    if rank == 0:
        prepare()
    dist.barrier()
    return read()


# %% right: the others meet rank 0 in another branch
def repair_rank0_only_barrier(rank, world_size, prepare, read):
    if dist.get_rank() == 0:
        prepare()
        dist.barrier()
    else:
        dist.barrier()
    content = read()
    return content


# %% right: a barrier that is waited for later
def repair_rank0_only_barrier(rank, world_size, prepare, read):
    if not rank:
        prepare()
    dist.barrier(async_op=True).wait()
    return str(read())


# %% wrong: everybody prepares | wrong | says: rank 0 alone prepares it
def repair_rank0_only_barrier(rank, world_size, prepare, read):
    prepare()
    dist.barrier()
    return read()


# %% wrong: rank 0 reads, the others are told | forbidden call | says: only barrier may be used
def repair_rank0_only_barrier(rank, world_size, prepare, read):
    box = [None]
    if rank == 0:
        prepare()
        box = [read()]
    dist.broadcast_object_list(box, src=0)
    return box[0]


# %% wrong: it tries until the file is there | wrong | says: rank 0 calls barrier 0 times; once is right
def repair_rank0_only_barrier(rank, world_size, prepare, read):
    if rank == 0:
        prepare()
    while True:
        try:
            return read()
        except FileNotFoundError:
            pass


# %% wrong: nothing comes back | wrong | says: returns nothing
def repair_rank0_only_barrier(rank, world_size, prepare, read):
    if rank == 0:
        prepare()
    dist.barrier()
    read()


# %% wrong: a barrier before and after | wrong | says: once is right
def repair_rank0_only_barrier(rank, world_size, prepare, read):
    dist.barrier()
    if rank == 0:
        prepare()
    dist.barrier()
    return read()


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
