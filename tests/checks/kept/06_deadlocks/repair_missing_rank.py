# %% wrong: no roll call | wrong | says: rank 0 does not begin with monitored_barrier: its first call is all_reduce


# %% wrong: a plain barrier in place of the roll call | wrong | says: does not begin with monitored_barrier: its first call is barrier


# %% wrong: only the first who is missing is named | wrong | says: By `wait_all_ranks=True` monitored_barrier names all


# %% right: an error in the learner's own words, chained to torch's
import re


def repair_missing_rank(rank, world_size, batches, patience):
    try:
        dist.monitored_barrier(timeout=patience, wait_all_ranks=True)
    except RuntimeError as error:
        if rank == 0:
            gone = [int(r) for r in re.findall(r"\d+", str(error).split("Ranks")[1].split("failed")[0])]
            came = world_size - len(gone)
            raise TimeoutError(
                f"only {came} of {world_size} ranks came within {patience}: {gone} are missing"
            ) from error
        raise
    steps = torch.tensor([len(batches)])
    dist.all_reduce(steps, op=dist.ReduceOp.MAX)
    sums = [sum((b.sum() for b in batches[k : k + 1]), torch.zeros([])) for k in range(int(steps))]
    for each in sums:
        dist.all_reduce(each)
    return [each.item() for each in sums]


# %% wrong: everybody else is accused | wrong | says: but rank 0's error says
def repair_missing_rank(rank, world_size, batches, patience):
    try:
        dist.monitored_barrier(timeout=patience, wait_all_ranks=True)
    except RuntimeError as error:
        raise RuntimeError(f"ranks {list(range(1, world_size))} are missing") from error
    steps = torch.tensor(len(batches))
    dist.all_reduce(steps, op=dist.ReduceOp.MAX)
    sums = []
    for step in range(steps.item()):
        total = batches[step].sum() if step < len(batches) else torch.zeros(())
        dist.all_reduce(total)
        sums.append(total.item())
    return sums


# %% wrong: half of the patience | wrong | says: Hand `patience` on as the timeout
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


# %% wrong: no timeout at all | wrong | says: Hand `patience` on as the timeout
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


# %% wrong: the roll call comes last | wrong | says: rank 0 does not begin with monitored_barrier
def repair_missing_rank(rank, world_size, batches, patience):
    steps = torch.tensor(len(batches))
    dist.all_reduce(steps, op=dist.ReduceOp.MAX)
    sums = []
    for step in range(steps.item()):
        total = batches[step].sum() if step < len(batches) else torch.zeros(())
        dist.all_reduce(total)
        sums.append(total.item())
    dist.monitored_barrier(timeout=patience, wait_all_ranks=True)
    return sums


# %% wrong: rank 0 alone holds the roll call | crashed | says: is a call for every rank
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


# %% wrong: sums of its own batches only | wrong | says: Each rank returns the sums of its own batches
def repair_missing_rank(rank, world_size, batches, patience):
    dist.monitored_barrier(timeout=patience, wait_all_ranks=True)
    return [batch.sum().item() for batch in batches]


# %% wrong: all steps in one number | wrong | says: This is the sum of all steps
def repair_missing_rank(rank, world_size, batches, patience):
    dist.monitored_barrier(timeout=patience, wait_all_ranks=True)
    total = torch.zeros(())
    for batch in batches:
        total += batch.sum()
    dist.all_reduce(total)
    return [total.item()]


# %% wrong: an async call that nobody waits for | wrong | says: never calls wait
def repair_missing_rank(rank, world_size, batches, patience):
    dist.monitored_barrier(timeout=patience, wait_all_ranks=True)
    steps = torch.tensor(len(batches))
    dist.all_reduce(steps, op=dist.ReduceOp.MAX)
    sums = []
    for step in range(steps.item()):
        total = batches[step].sum() if step < len(batches) else torch.zeros(())
        dist.all_reduce(total, async_op=True)
        sums.append(total.item())
    return sums
