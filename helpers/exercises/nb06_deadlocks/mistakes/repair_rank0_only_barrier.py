# %% the barrier is for rank 0 only | crashed
# A rank read before rank 0 had prepared. `prepare` comes before the barrier, `read` after it, and every
# rank passes the barrier.
def repair_rank0_only_barrier(rank, world_size, prepare, read):
    if rank == 0:
        prepare()
        dist.barrier()
    return read()


# %% only the others wait | deadlocked
# `barrier` is a collective: a line that only some ranks reach is the wrong place for it.
def repair_rank0_only_barrier(rank, world_size, prepare, read):
    if rank == 0:
        prepare()
    else:
        dist.barrier()
    return read()


# %% the barrier comes first | crashed
# A rank read before rank 0 had prepared. `prepare` comes before the barrier, `read` after it, and every
# rank passes the barrier.
def repair_rank0_only_barrier(rank, world_size, prepare, read):
    dist.barrier()
    if rank == 0:
        prepare()
    return read()


# %% the barrier comes after reading | crashed
# A rank read before rank 0 had prepared. `prepare` comes before the barrier, `read` after it, and every
# rank passes the barrier.
def repair_rank0_only_barrier(rank, world_size, prepare, read):
    if rank == 0:
        prepare()
    content = read()
    dist.barrier()
    return content


# %% prepare is not called, but named | crashed
# A rank read before rank 0 had prepared. `prepare` comes before the barrier, `read` after it, and every
# rank passes the barrier.
def repair_rank0_only_barrier(rank, world_size, prepare, read):
    if rank == 0:
        prepare
    dist.barrier()
    return read()


# %% an async barrier is left behind | crashed
# A rank read before rank 0 had prepared. `prepare` comes before the barrier, `read` after it, and every
# rank passes the barrier.
def repair_rank0_only_barrier(rank, world_size, prepare, read):
    if rank == 0:
        prepare()
    dist.barrier(async_op=True)
    return read()
