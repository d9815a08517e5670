# %% right: roll call, the largest number of steps, zeros for who has none left
def repair_missing_rank(rank, world_size, batches, patience):
    dist.monitored_barrier(timeout=patience, wait_all_ranks=True)
    steps = torch.tensor(len(batches))
    dist.all_reduce(steps, op=dist.ReduceOp.MAX)
    sums = []
    for step in range(steps.item()):
        total = batches[step].sum() if step < len(batches) else torch.zeros(())
        dist.all_reduce(total)
        sums.append(total.item())
    return sums


# %% right: all sums in one tensor and one reduction
def repair_missing_rank(rank, world_size, batches, patience):
    dist.monitored_barrier(None, patience, True)
    most = torch.tensor([len(batches)])
    dist.all_reduce(most, dist.ReduceOp.MAX)
    sums = torch.zeros(int(most))
    for i, batch in enumerate(batches):
        sums[i] = batch.sum()
    dist.all_reduce(sums)
    return sums.tolist()


# %% right: batches of zeros are appended
def pad(batches, n):
    return batches + [torch.zeros(1)] * (n - len(batches))


def repair_missing_rank(rank, world_size, batches, patience):
    dist.monitored_barrier(timeout=patience, wait_all_ranks=True)
    n = torch.tensor(float(len(batches)))
    dist.all_reduce(n, op=dist.ReduceOp.MAX)
    result = []
    for batch in pad(batches, int(n.item())):
        s = torch.sum(batch)
        work = dist.all_reduce(s, async_op=True)
        work.wait()
        result.append(float(s))
    return result


# %% wrong: the programme as it was | deadlocked | says: the same number of steps
def repair_missing_rank(rank, world_size, batches, patience):
    sums = []
    for batch in batches:
        total = batch.sum()
        dist.all_reduce(total)
        sums.append(total.item())
    return sums


# %% wrong: no roll call | deadlocked | says: would name them
def repair_missing_rank(rank, world_size, batches, patience):
    steps = torch.tensor(len(batches))
    dist.all_reduce(steps, op=dist.ReduceOp.MAX)
    sums = []
    for step in range(steps.item()):
        total = batches[step].sum() if step < len(batches) else torch.zeros(())
        dist.all_reduce(total)
        sums.append(total.item())
    return sums


# %% wrong: a plain barrier in place of the roll call | deadlocked | says: monitored_barrier
def repair_missing_rank(rank, world_size, batches, patience):
    dist.barrier()
    steps = torch.tensor(len(batches))
    dist.all_reduce(steps, op=dist.ReduceOp.MAX)
    sums = []
    for step in range(steps.item()):
        total = batches[step].sum() if step < len(batches) else torch.zeros(())
        dist.all_reduce(total)
        sums.append(total.item())
    return sums


# %% wrong: only the first who is missing is named | wrong | says: wait_all_ranks=True
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


# %% wrong: as many steps as the shortest list has | wrong | says: the rank with the most batches decides
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


# %% wrong: no zero for a batch that is not there | crashed | says: adds 0
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


# %% wrong: the error is swallowed | wrong | says: never came, and yet rank 0 returned
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


# %% wrong: it asks before each step who goes on | wrong | says: at most
def repair_missing_rank(rank, world_size, batches, patience):
    dist.monitored_barrier(timeout=patience, wait_all_ranks=True)
    sums, step = [], 0
    while True:
        more = torch.tensor(float(step < len(batches)))
        dist.all_reduce(more)
        if more == 0:
            return sums
        total = batches[step].sum() if step < len(batches) else torch.zeros(())
        dist.all_reduce(total)
        sums.append(total.item())
        step += 1


# %% wrong: the timeout is copied from the text | wrong | says: Hand `patience` on
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


# %% wrong: an int for the batch that is not there | crashed | says: same dtype
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
