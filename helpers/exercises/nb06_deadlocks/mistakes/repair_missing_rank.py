# %% the program as it was | deadlocked
# A rank with fewer batches has left the loop, so the others wait for it. Agree on the largest number of
# steps first, and add 0 where a rank has no batch.
def repair_missing_rank(rank, world_size, batches, patience):
    sums = []
    for batch in batches:
        total = batch.sum()
        dist.all_reduce(total)
        sums.append(total.item())
    return sums


# %% only the first who is missing is named
# Only one missing rank is named. With `wait_all_ranks=True`, `monitored_barrier` names all of them.
def repair_missing_rank(rank, world_size, batches, patience):
    dist.monitored_barrier(timeout=patience)
    steps = torch.tensor(len(batches))
    dist.all_reduce(steps, op=dist.ReduceOp.MAX)
    sums = []
    for step in range(steps.item()):
        total = batches[step].sum() if step < len(batches) else torch.zeros(())
        dist.all_reduce(total)
        sums.append(total.item())
    return sums


# %% as many steps as the shortest list has
# Some steps are missing: there are as many as the shortest list has. Agree on the largest number of
# batches.
def repair_missing_rank(rank, world_size, batches, patience):
    dist.monitored_barrier(timeout=patience, wait_all_ranks=True)
    steps = torch.tensor(len(batches))
    dist.all_reduce(steps, op=dist.ReduceOp.MIN)
    sums = []
    for step in range(steps.item()):
        total = batches[step].sum()
        dist.all_reduce(total)
        sums.append(total.item())
    return sums


# %% no zero for a batch that is not there | crashed
# A rank without a batch for this step reads beyond its list. Add 0 there.
def repair_missing_rank(rank, world_size, batches, patience):
    dist.monitored_barrier(timeout=patience, wait_all_ranks=True)
    steps = torch.tensor(len(batches))
    dist.all_reduce(steps, op=dist.ReduceOp.MAX)
    sums = []
    for step in range(steps.item()):
        total = batches[step].sum()
        dist.all_reduce(total)
        sums.append(total.item())
    return sums


# %% the error is swallowed
# The error of `monitored_barrier` is caught, and rank 0 returns. Let the error pass, or raise another one.
def repair_missing_rank(rank, world_size, batches, patience):
    try:
        dist.monitored_barrier(timeout=patience, wait_all_ranks=True)
    except RuntimeError:
        return []
    steps = torch.tensor(len(batches))
    dist.all_reduce(steps, op=dist.ReduceOp.MAX)
    sums = []
    for step in range(steps.item()):
        total = batches[step].sum() if step < len(batches) else torch.zeros(())
        dist.all_reduce(total)
        sums.append(total.item())
    return sums


# %% the timeout is copied from the text
# Pass `patience` on as the timeout of `monitored_barrier`.
from datetime import timedelta


def repair_missing_rank(rank, world_size, batches, patience):
    dist.monitored_barrier(timeout=timedelta(seconds=1), wait_all_ranks=True)
    steps = torch.tensor(len(batches))
    dist.all_reduce(steps, op=dist.ReduceOp.MAX)
    sums = []
    for step in range(steps.item()):
        total = batches[step].sum() if step < len(batches) else torch.zeros(())
        dist.all_reduce(total)
        sums.append(total.item())
    return sums


# %% an int for the batch that is not there | crashed
# The ranks hand in different dtypes. Where there is no batch, add a float32 zero, `torch.zeros(())`, not an
# int.
def repair_missing_rank(rank, world_size, batches, patience):
    dist.monitored_barrier(timeout=patience, wait_all_ranks=True)
    steps = torch.tensor(len(batches))
    dist.all_reduce(steps, op=dist.ReduceOp.MAX)
    sums = []
    for step in range(steps.item()):
        total = batches[step].sum() if step < len(batches) else torch.tensor(0)
        dist.all_reduce(total)
        sums.append(total.item())
    return sums


# %% half of the patience
# Pass `patience` on as the timeout of `monitored_barrier`.
def repair_missing_rank(rank, world_size, batches, patience):
    dist.monitored_barrier(timeout=patience / 2, wait_all_ranks=True)
    steps = torch.tensor(len(batches))
    dist.all_reduce(steps, op=dist.ReduceOp.MAX)
    sums = []
    for step in range(steps.item()):
        total = batches[step].sum() if step < len(batches) else torch.zeros(())
        dist.all_reduce(total)
        sums.append(total.item())
    return sums


# %% no timeout at all
# Pass `patience` on as the timeout of `monitored_barrier`.
def repair_missing_rank(rank, world_size, batches, patience):
    dist.monitored_barrier(wait_all_ranks=True)
    steps = torch.tensor(len(batches))
    dist.all_reduce(steps, op=dist.ReduceOp.MAX)
    sums = []
    for step in range(steps.item()):
        total = batches[step].sum() if step < len(batches) else torch.zeros(())
        dist.all_reduce(total)
        sums.append(total.item())
    return sums


# %% rank 0 alone holds the roll call | crashed
# Only rank 0 calls `monitored_barrier`. Every rank has to call it.
def repair_missing_rank(rank, world_size, batches, patience):
    if rank == 0:
        dist.monitored_barrier(timeout=patience, wait_all_ranks=True)
    steps = torch.tensor(len(batches))
    dist.all_reduce(steps, op=dist.ReduceOp.MAX)
    sums = []
    for step in range(steps.item()):
        total = batches[step].sum() if step < len(batches) else torch.zeros(())
        dist.all_reduce(total)
        sums.append(total.item())
    return sums


# %% sums of its own batches only
# Each rank returns the sums of its own batches. Add up those of all ranks.
def repair_missing_rank(rank, world_size, batches, patience):
    dist.monitored_barrier(timeout=patience, wait_all_ranks=True)
    return [batch.sum().item() for batch in batches]


# %% all steps in one number
# This is the sum over all steps. Return one sum for each step.
def repair_missing_rank(rank, world_size, batches, patience):
    dist.monitored_barrier(timeout=patience, wait_all_ranks=True)
    total = torch.zeros(())
    for batch in batches:
        total += batch.sum()
    dist.all_reduce(total)
    return [total.item()]
