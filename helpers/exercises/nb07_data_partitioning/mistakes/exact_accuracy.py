# %% the padding is counted
# The padded samples are counted too. Which of this rank's positions are beyond the data?
def exact_accuracy(rank, world_size, predicted, labels, length):
    counts = torch.tensor([(predicted == labels).sum(), len(labels)])
    dist.all_reduce(counts)
    return (counts[0] / counts[1]).item()


# %% padded right answers over the real length
# The number of right answers still includes those of padded samples.
def exact_accuracy(rank, world_size, predicted, labels, length):
    right = (predicted == labels).sum()
    dist.all_reduce(right)
    return right.item() / length


# %% the real right answers over the padded length
# The right answers are counted correctly, but divided by a number that includes the padding.
def exact_accuracy(rank, world_size, predicted, labels, length):
    own = len(range(rank, length, world_size))
    counts = torch.tensor([(predicted[:own] == labels[:own]).sum(), len(labels)])
    dist.all_reduce(counts)
    return (counts[0] / counts[1]).item()


# %% the mean of the ranks' accuracies
# This is the mean of the ranks' accuracies. Ranks with fewer real samples weigh too much: add up counts, then
# divide once.
def exact_accuracy(rank, world_size, predicted, labels, length):
    own = len(range(rank, length, world_size))
    accuracy = (predicted[:own] == labels[:own]).double().sum() / max(own, 1)
    dist.all_reduce(accuracy)
    return accuracy.item() / world_size


# %% the mean, and a rank without real samples divides 0 by 0
# A rank without real samples divides 0 by 0. Add up counts, then divide once, at the end.
def exact_accuracy(rank, world_size, predicted, labels, length):
    own = len(range(rank, length, world_size))
    accuracy = (predicted[:own] == labels[:own]).double().mean()
    dist.all_reduce(accuracy)
    return accuracy.item() / world_size


# %% only its own samples
# Each rank only knows about its own right answers. Add up the counts of all ranks with `all_reduce`.
def exact_accuracy(rank, world_size, predicted, labels, length):
    own = len(range(rank, length, world_size))
    return (predicted[:own] == labels[:own]).sum().item() / max(own, 1)


# %% not divided
# This is the number of right answers. Divide it by `length`.
def exact_accuracy(rank, world_size, predicted, labels, length):
    own = len(range(rank, length, world_size))
    right = (predicted[:own] == labels[:own]).sum()
    dist.all_reduce(right)
    return right.item()


# %% the padding is all on the last rank
# Padding is spread over the last ranks, one sample each: it is not all at the end of the last one.
def exact_accuracy(rank, world_size, predicted, labels, length):
    own = len(labels) - (len(labels) * world_size - length if rank == world_size - 1 else 0)
    right = (predicted[: max(0, own)] == labels[: max(0, own)]).sum()
    dist.all_reduce(right)
    return right.item() / length


# %% counts in bytes
# The count overflows: a byte holds at most 255. Count in int64, which `sum()` uses by default.
def exact_accuracy(rank, world_size, predicted, labels, length):
    own = len(range(rank, length, world_size))
    right = (predicted[:own] == labels[:own]).sum(dtype=torch.uint8)
    dist.all_reduce(right)
    return right.item() / length


# %% rank 0 alone returns it
# Only rank 0 returns the accuracy; the others return None. Return it on every rank.
def exact_accuracy(rank, world_size, predicted, labels, length):
    own = len(range(rank, length, world_size))
    right = (predicted[:own] == labels[:own]).sum()
    dist.all_reduce(right)
    if rank == 0:
        return right.item() / length


# %% the last sample of high ranks is dropped
# The last sample of each rank from `length % world_size` on is dropped. Where `length` is a multiple of
# `world_size` there is no padding, and these are real samples.
def exact_accuracy(rank, world_size, predicted, labels, length):
    right = predicted == labels
    if rank >= length % world_size:
        right = right[:-1]
    counts = torch.tensor([right.sum(), len(right)])
    dist.all_reduce(counts)
    return (counts[0] / counts[1]).item()


# %% it counts in half precision
# The count was rounded: half precision has about 3 digits. Count in int64, which `sum()` uses by default.
def exact_accuracy(rank, world_size, predicted, labels, length):
    real = torch.arange(len(labels)) * world_size + rank < length
    right = ((predicted == labels) & real).sum().half()
    dist.all_reduce(right)
    return right.item() / length
