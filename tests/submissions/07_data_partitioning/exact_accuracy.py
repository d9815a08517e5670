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


# %% wrong: the padding is counted | wrong | says: padded samples are counted
def exact_accuracy(rank, world_size, predicted, labels, length):
    counts = torch.tensor([(predicted == labels).sum(), len(labels)])
    dist.all_reduce(counts)
    return (counts[0] / counts[1]).item()


# %% wrong: padded right answers over the real length | wrong | says: still holds those of padded samples
def exact_accuracy(rank, world_size, predicted, labels, length):
    right = (predicted == labels).sum()
    dist.all_reduce(right)
    return right.item() / length


# %% wrong: the mean of the ranks' accuracies | wrong | says: mean of the ranks' accuracies
def exact_accuracy(rank, world_size, predicted, labels, length):
    real = torch.arange(len(labels)) * world_size + rank < length
    own = (
        (predicted == labels)[real].double().mean()
        if real.any()
        else torch.zeros((), dtype=torch.double)
    )
    dist.all_reduce(own)
    return own.item() / world_size


# %% wrong: only its own samples | wrong | says: knows of its own right answers only
def exact_accuracy(rank, world_size, predicted, labels, length):
    real = torch.arange(len(labels)) * world_size + rank < length
    return ((predicted == labels) & real).sum().item() / max(1, int(real.sum()))


# %% wrong: everything is gathered | forbidden call | says: only all_reduce may be used
def exact_accuracy(rank, world_size, predicted, labels, length):
    right = (predicted == labels).int()
    parts = [torch.empty_like(right) for _ in range(world_size)]
    dist.all_gather(parts, right)
    return torch.stack(parts, 1).flatten()[:length].float().mean().item()


# %% wrong: the padding is thought to be at the end of the last rank only | wrong | says: [\d.]+ is not [\d.]+
def exact_accuracy(rank, world_size, predicted, labels, length):
    padding = len(labels) * world_size - length
    own = len(labels) - (padding if rank == world_size - 1 else 0)
    right = (predicted[: max(0, own)] == labels[: max(0, own)]).sum()
    dist.all_reduce(right)
    return right.item() / length


# %% wrong: rank 0 alone returns it | wrong | says: on every path
def exact_accuracy(rank, world_size, predicted, labels, length):
    real = torch.arange(len(labels)) * world_size + rank < length
    right = ((predicted == labels) & real).sum()
    dist.all_reduce(right)
    if rank == 0:
        return right.item() / length


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


# %% wrong: it counts in bytes | wrong | says: 0.032593 is not 0.59568
def exact_accuracy(rank, world_size, predicted, labels, length):
    real = torch.arange(len(labels)) * world_size + rank < length
    right = ((predicted == labels) & real).sum(dtype=torch.uint8)
    dist.all_reduce(right)
    return right.item() / length


# %% wrong: it counts in half precision | wrong | says: 0.59588 is not 0.59568
def exact_accuracy(rank, world_size, predicted, labels, length):
    real = torch.arange(len(labels)) * world_size + rank < length
    right = ((predicted == labels) & real).sum().half()
    dist.all_reduce(right)
    return right.item() / length


# %% wrong: one sample too many | wrong | says: sum of right answers still holds those of padded
def exact_accuracy(rank, world_size, predicted, labels, length):
    real = torch.arange(len(labels)) * world_size + rank <= length
    right = ((predicted == labels) & real).sum()
    dist.all_reduce(right)
    return right.item() / length
