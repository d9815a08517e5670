# %% the programme as it was | deadlocked
# A rank with fewer batches has left the loop. All ranks must make the same number of steps: agree on the
# largest number first, and add 0 where you have no batch.
def repair_missing_rank(rank, world_size, batches, patience):
    sums = []
    for batch in batches:
        total = batch.sum()
        dist.all_reduce(total)
        sums.append(total.item())
    return sums


# %% only the first who is missing is named
# By `wait_all_ranks=True` monitored_barrier names all who are missing, not only the first.
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
# Some steps are missing: the rank with the most batches decides how many there are.
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
# A rank that has no batch for this step adds 0 instead of `batches[step].sum()`.
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
# Let the error of `monitored_barrier` pass: whoever catches it must raise one again.
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
# Hand `patience` on as the timeout.
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
# All ranks must hand in the same dtype: where there is no batch, add a zero of the dtype of the sums,
# such as torch.zeros(()), not an int.
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
# Hand `patience` on as the timeout.
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
# Hand `patience` on as the timeout.
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
# `monitored_barrier` is a call for every rank, not for some alone.
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
# Each rank returns the sums of its own batches: add up those of all ranks.
def repair_missing_rank(rank, world_size, batches, patience):
    dist.monitored_barrier(timeout=patience, wait_all_ranks=True)
    return [batch.sum().item() for batch in batches]


# %% all steps in one number
# This is the sum of all steps; one for each step is wanted.
def repair_missing_rank(rank, world_size, batches, patience):
    dist.monitored_barrier(timeout=patience, wait_all_ranks=True)
    total = torch.zeros(())
    for batch in batches:
        total += batch.sum()
    dist.all_reduce(total)
    return [total.item()]
