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


# %% wrong: no roll call | wrong | says: rank 0 does not begin with monitored_barrier: its first call is all_reduce
def repair_missing_rank(rank, world_size, batches, patience):
    steps = torch.tensor(len(batches))
    dist.all_reduce(steps, op=dist.ReduceOp.MAX)
    sums = []
    for step in range(steps.item()):
        total = batches[step].sum() if step < len(batches) else torch.zeros(())
        dist.all_reduce(total)
        sums.append(total.item())
    return sums


# %% wrong: a plain barrier in place of the roll call | wrong | says: does not begin with monitored_barrier: its first call is barrier
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


# %% wrong: it asks before each step who goes on | wrong | says: 5 times; at most 3 times is right
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


# %% right: an error in the learner's own words, chained to torch's
import re


def repair_missing_rank(rank, world_size, batches, patience):
    try:
        dist.monitored_barrier(timeout=patience, wait_all_ranks=True)
    except RuntimeError as error:
        if rank == 0:
            gone = [
                int(r) for r in re.findall(r"\d+", str(error).split("Ranks")[1].split("failed")[0])
            ]
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
