# %% right: a mask over the positions
def exact_accuracy(rank, world_size, predicted, labels, length):
    real = torch.arange(len(labels)) * world_size + rank < length
    right = ((predicted == labels) & real).sum()
    dist.all_reduce(right)
    return right.item() / length


# %% right: a loop, and both counts in one tensor
def exact_accuracy(rank, world_size, predicted, labels, length):
    counts = torch.zeros(2, dtype=torch.float64)
    for k in range(len(labels)):
        if rank + k * world_size < length:
            counts += torch.tensor([float(predicted[k] == labels[k]), 1.0])
    dist.all_reduce(counts)
    return counts[0] / counts[1]


# %% right: the number of real samples by arithmetic
def exact_accuracy(rank, world_size, predicted, labels, length):
    own = len(range(rank, length, world_size))
    right = torch.tensor([(predicted[:own] == labels[:own]).sum().item()])
    dist.all_reduce(right, op=dist.ReduceOp.SUM)
    return int(right) / length


# %% wrong: everything is gathered | forbidden call | says: only all_reduce may be used
def exact_accuracy(rank, world_size, predicted, labels, length):
    right = (predicted == labels).int()
    parts = [torch.empty_like(right) for _ in range(world_size)]
    dist.all_gather(parts, right)
    return torch.stack(parts, 1).flatten()[:length].float().mean().item()


# %% right: an asynchronous call that is waited for
def exact_accuracy(rank, world_size, predicted, labels, length):
    places = torch.arange(rank, len(labels) * world_size, world_size)
    right = (predicted == labels)[places < length].sum()
    work = dist.all_reduce(right, async_op=True)
    work.wait()
    return float(right) / length


# %% wrong: every answer is sent, not counts | wrong | says: two numbers have 16 bytes
def exact_accuracy(rank, world_size, predicted, labels, length):
    hits = torch.zeros(length)
    mine = torch.arange(rank, length, world_size)
    hits[mine] = (predicted == labels)[: len(mine)].float()
    dist.all_reduce(hits)
    return hits.mean().item()


# %% wrong: it sleeps in place of waiting | wrong | says: 4.6117e\+18 is not 0.5
def exact_accuracy(rank, world_size, predicted, labels, length):
    import time

    real = torch.arange(len(labels)) * world_size + rank < length
    right = ((predicted == labels) & real).sum()
    work = dist.all_reduce(right, async_op=True)
    time.sleep(0.2)
    share = right.item() / length
    work.wait()
    return share
