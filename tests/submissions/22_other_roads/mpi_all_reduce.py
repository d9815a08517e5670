from mpi4py import MPI


# %% right: in place on one piece of memory
def mpi_all_reduce(world, x, op):
    whole = x.contiguous()
    world.Allreduce(MPI.IN_PLACE, whole.numpy(), op=MPI.MAX if op == "max" else MPI.SUM)
    if op == "mean":
        whole /= world.Get_size()
    x.copy_(whole)


# %% right: tensors as they are, an empty one to receive, non-blocking
def mpi_all_reduce(world, x, op):
    result = torch.empty(x.shape, dtype=x.dtype)
    how = {"sum": MPI.SUM, "mean": MPI.SUM, "max": MPI.MAX}[op]
    world.Iallreduce(x.clone(memory_format=torch.contiguous_format), result, how).Wait()
    x[...] = result / world.size if op == "mean" else result


# %% right: through numpy
def mpi_all_reduce(world, x, op):
    import numpy as np

    mine = np.ascontiguousarray(x.numpy())
    total = np.empty_like(mine)
    world.Allreduce(mine, total, op=MPI.MAX if op == "max" else MPI.SUM)
    x.copy_(torch.from_numpy(total))
    if op == "mean":
        x.div_(world.Get_size())


# %% wrong: pickled | wrong | says: `Allreduce` with a capital letter
def mpi_all_reduce(world, x, op):
    total = (
        world.allreduce(x.clone(), op=MPI.MAX if op == "max" else MPI.SUM) if op != "max" else None
    )
    if op == "max":
        total = torch.stack(world.allgather(x.clone())).amax(0)
    x.copy_(total / world.size if op == "mean" else total)


# %% wrong: returned, not in place | wrong | says: your function returns something|x is unchanged, and something is returned
def mpi_all_reduce(world, x, op):
    whole = x.contiguous().clone()
    world.Allreduce(MPI.IN_PLACE, whole.numpy(), op=MPI.MAX if op == "max" else MPI.SUM)
    return whole / world.Get_size() if op == "mean" else whole


# %% wrong: the mean is a sum | wrong | says: MPI has no op for the mean
def mpi_all_reduce(world, x, op):
    whole = x.contiguous()
    world.Allreduce(MPI.IN_PLACE, whole.numpy(), op=MPI.MAX if op == "max" else MPI.SUM)
    x.copy_(whole)


# %% wrong: an op that MPI does not have | crashed | says: MPI has no op for the mean
def mpi_all_reduce(world, x, op):
    how = {"sum": MPI.SUM, "max": MPI.MAX, "mean": MPI.AVG}[op]
    world.Allreduce(MPI.IN_PLACE, x.numpy(), op=how)


# %% wrong: only for tensors in one piece | crashed | says: (?s)world.Allreduce\(MPI.IN_PLACE, x, op.*do not lie side by side
def mpi_all_reduce(world, x, op):
    world.Allreduce(MPI.IN_PLACE, x, op=MPI.MAX if op == "max" else MPI.SUM)
    if op == "mean":
        x /= world.Get_size()


# %% wrong: the copy is not copied back | wrong | says: Copy its result back
def mpi_all_reduce(world, x, op):
    x = x.contiguous()
    world.Allreduce(MPI.IN_PLACE, x.numpy(), op=MPI.MAX if op == "max" else MPI.SUM)
    if op == "mean":
        x /= world.Get_size()


# %% wrong: the sum for every op | wrong | says: pass `op=MPI.MAX`
def mpi_all_reduce(world, x, op):
    whole = x.contiguous()
    world.Allreduce(MPI.IN_PLACE, whole.numpy())
    if op == "mean":
        whole /= world.Get_size()
    x.copy_(whole)


# %% wrong: two calls | wrong | says: by Reduce, Bcast; one `Allreduce`
def mpi_all_reduce(world, x, op):
    mine = x.contiguous().clone()
    total = torch.empty_like(mine)
    world.Reduce(mine, total, op=MPI.MAX if op == "max" else MPI.SUM, root=0)
    world.Bcast(total, root=0)
    x.copy_(total / world.Get_size() if op == "mean" else total)


# %% wrong: torch's own all_reduce | crashed | says: the ranks are MPI's
def mpi_all_reduce(world, x, op):
    dist.all_reduce(x)
    if op == "mean":
        x /= dist.get_world_size()


# %% wrong: over all ranks, whatever the communicator | wrong | says: use `world`, which is given
def mpi_all_reduce(world, x, op):
    whole, world = x.contiguous(), MPI.COMM_WORLD
    world.Allreduce(MPI.IN_PLACE, whole.numpy(), op=MPI.MAX if op == "max" else MPI.SUM)
    if op == "mean":
        whole /= world.Get_size()
    x.copy_(whole)


# %% wrong: divides by the size of the world | wrong | says: divided by 3, the number of all ranks
def mpi_all_reduce(world, x, op):
    whole = x.contiguous()
    world.Allreduce(MPI.IN_PLACE, whole.numpy(), op=MPI.MAX if op == "max" else MPI.SUM)
    if op == "mean":
        whole /= MPI.COMM_WORLD.Get_size()
    x.copy_(whole)


# %% wrong: a collective that rank 0 alone calls | timed out | says: wait in a call of `world` for ranks that never make it
def mpi_all_reduce(world, x, op):
    whole = x.contiguous()
    if MPI.COMM_WORLD.rank == 0:
        world.Allreduce(MPI.IN_PLACE, whole.numpy(), op=MPI.MAX if op == "max" else MPI.SUM)
    x.copy_(whole)


# %% wrong: one memory twice | crashed | says: `MPI.IN_PLACE` as the first
def mpi_all_reduce(world, x, op):
    whole = x.contiguous()
    world.Allreduce(whole.numpy(), whole.numpy(), op=MPI.MAX if op == "max" else MPI.SUM)
    x.copy_(whole / world.size if op == "mean" else whole)


# %% wrong: the exercise's word for MPI's op | crashed | says: MPI's ops are MPI.SUM and MPI.MAX
def mpi_all_reduce(world, x, op):
    whole = x.contiguous()
    world.Allreduce(MPI.IN_PLACE, whole.numpy(), op=op)
    x.copy_(whole)


# %% wrong: the elements between are summed, too | wrong | says: elements between
from mpi4py import MPI


def mpi_all_reduce(world, x, op):
    whole = x
    if not x.is_contiguous():
        whole = torch.as_strided(x, (x.numel() * 2 - 1,), (1,))
    world.Allreduce(MPI.IN_PLACE, whole.numpy(), op=MPI.MAX if op == "max" else MPI.SUM)
    if op == "mean":
        x /= world.size
