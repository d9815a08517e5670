# %% the barrier is for rank 0 only | crashed
# A rank reads before rank 0 has prepared. `prepare` comes before the barrier and `read` after it, and every
# rank passes the barrier.
def repair_rank0_only_barrier(rank, world_size, prepare, read):
    if rank == 0:
        prepare()
        dist.barrier()
    return read()


# %% only the others wait | deadlocked
# Rank 0 does not reach the barrier. `barrier` is a collective: every rank has to call it.
def repair_rank0_only_barrier(rank, world_size, prepare, read):
    if rank == 0:
        prepare()
    else:
        dist.barrier()
    return read()


# %% the barrier comes first | crashed
# A rank reads before rank 0 has prepared. `prepare` comes before the barrier and `read` after it, and every
# rank passes the barrier.
def repair_rank0_only_barrier(rank, world_size, prepare, read):
    dist.barrier()
    if rank == 0:
        prepare()
    return read()


# %% the barrier comes after reading | crashed
# A rank reads before rank 0 has prepared. `prepare` comes before the barrier and `read` after it, and every
# rank passes the barrier.
def repair_rank0_only_barrier(rank, world_size, prepare, read):
    if rank == 0:
        prepare()
    content = read()
    dist.barrier()
    return content


# %% prepare is not called, but named | crashed
# A rank reads before rank 0 has prepared. `prepare` comes before the barrier and `read` after it, and every
# rank passes the barrier.
def repair_rank0_only_barrier(rank, world_size, prepare, read):
    if rank == 0:
        prepare
    dist.barrier()
    return read()
