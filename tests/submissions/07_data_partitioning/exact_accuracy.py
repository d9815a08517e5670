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
    own = (predicted == labels)[real].double().mean() if real.any() else torch.zeros((), dtype=torch.double)
    dist.all_reduce(own)
    return own.item() / world_size


# %% wrong: only its own samples | wrong | says: rank 0's own samples
def exact_accuracy(rank, world_size, predicted, labels, length):
    real = torch.arange(len(labels)) * world_size + rank < length
    return ((predicted == labels) & real).sum().item() / max(1, int(real.sum()))


# %% wrong: everything is gathered | forbidden call | says: only all_reduce may be used
def exact_accuracy(rank, world_size, predicted, labels, length):
    right = (predicted == labels).int()
    parts = [torch.empty_like(right) for _ in range(world_size)]
    dist.all_gather(parts, right)
    return torch.stack(parts, 1).flatten()[:length].float().mean().item()


# %% wrong: the padding is thought to be at the end of the last rank only | wrong | says: .
def exact_accuracy(rank, world_size, predicted, labels, length):
    padding = len(labels) * world_size - length
    own = len(labels) - (padding if rank == world_size - 1 else 0)
    right = (predicted[: max(0, own)] == labels[: max(0, own)]).sum()
    dist.all_reduce(right)
    return right.item() / length


# %% wrong: rank 0 alone returns it | wrong | says: every rank must return its value
def exact_accuracy(rank, world_size, predicted, labels, length):
    real = torch.arange(len(labels)) * world_size + rank < length
    right = ((predicted == labels) & real).sum()
    dist.all_reduce(right)
    if rank == 0:
        return right.item() / length
