# %% the plain average
# This is the plain mean over the ranks, but the ranks have {counts} samples. Multiply each gradient by its
# rank's `samples`, sum, and divide by the number of all samples, {total}.
def weighted_average_gradients(model, samples):
    for p in model.parameters():
        if p.grad is None:
            p.grad = torch.zeros_like(p)
        dist.all_reduce(p.grad)
        p.grad /= dist.get_world_size()


# %% weighted, then divided by the world size
# The weighted sum is divided by the world size, {n}: divide it by the number of all samples, {total}.
def weighted_average_gradients(model, samples):
    for p in model.parameters():
        if p.grad is None:
            p.grad = torch.zeros_like(p)
        p.grad *= samples
        dist.all_reduce(p.grad)
        p.grad /= dist.get_world_size()


# %% divided by its own number
# The weighted sum is divided by this rank's own number of samples: divide it by the number of all samples,
# {total}.
def weighted_average_gradients(model, samples):
    for p in model.parameters():
        if p.grad is None:
            p.grad = torch.zeros_like(p)
        p.grad *= samples
        dist.all_reduce(p.grad)
        p.grad /= max(1, samples)


# %% the rank without samples returns early | deadlocked
# Rank {empty} has no samples and so no gradients. It must still make the same calls as the others: let it
# send zeros.
def weighted_average_gradients(model, samples):
    if samples == 0:
        return
    total = torch.tensor(float(samples))
    dist.all_reduce(total)
    for p in model.parameters():
        p.grad *= samples / total
        dist.all_reduce(p.grad)


# %% the mean of the ranks that have samples
# This is the plain mean over the ranks that have samples, but the ranks have {counts} samples. Multiply
# each gradient by its rank's `samples`, sum, and divide by the number of all samples, {total}.
def weighted_average_gradients(model, samples):
    ranks = torch.tensor(float(samples > 0))
    dist.all_reduce(ranks)
    for p in model.parameters():
        if p.grad is None:
            p.grad = torch.zeros_like(p)
        dist.all_reduce(p.grad)
        p.grad /= ranks


# %% 0 / 0
# A rank without samples divides 0 by 0, which is NaN, and NaN times 0 is NaN: let it send zeros.
def weighted_average_gradients(model, samples):
    total = torch.tensor(float(samples))
    dist.all_reduce(total)
    for p in model.parameters():
        if p.grad is None:
            p.grad = torch.zeros_like(p) / samples
        p.grad *= samples / total
        dist.all_reduce(p.grad)


# %% does nothing about None | crashed
# `p.grad` is None on a rank without samples: use zeros there.
def weighted_average_gradients(model, samples):
    total = torch.tensor(float(samples))
    dist.all_reduce(total)
    for p in model.parameters():
        p.grad *= samples / total
        dist.all_reduce(p.grad)


# %% divided by the number of samples and by the world size
# The weighted sum is divided by the number of all samples, which is right, but also by the world size,
# which is not.
def weighted_average_gradients(model, samples):
    total = torch.tensor(float(samples))
    dist.all_reduce(total)
    for p in model.parameters():
        g = torch.zeros_like(p) if p.grad is None else p.grad
        g *= samples / total
        dist.all_reduce(g, op=dist.ReduceOp.AVG)
        p.grad = g


# %% weighted, but not divided
# This is the weighted sum: divide it by the number of all samples, {total}.
def weighted_average_gradients(model, samples):
    for p in model.parameters():
        g = torch.zeros_like(p) if p.grad is None else p.grad
        g *= samples
        dist.all_reduce(g)
        p.grad = g


# %% forgets to write back where it was None
# Where `p.grad` was None, it still is: set it to the mean there, too.
def weighted_average_gradients(model, samples):
    total = torch.tensor(float(samples))
    dist.all_reduce(total)
    for p in model.parameters():
        g = torch.zeros_like(p) if p.grad is None else p.grad
        g *= samples / total
        dist.all_reduce(g)


# %% no sum over the ranks
# The gradients are weighted, but not summed over the ranks.
def weighted_average_gradients(model, samples):
    total = torch.tensor(float(samples))
    dist.all_reduce(total)
    for p in model.parameters():
        if p.grad is not None:
            p.grad *= samples / total


# %% an average beside p.grad
# The gradients have not changed: write the mean into `p.grad`.
def weighted_average_gradients(model, samples):
    total = torch.tensor(float(samples))
    dist.all_reduce(total)
    for p in model.parameters():
        g = torch.zeros_like(p) if p.grad is None else p.grad.clone()
        g *= samples / total
        dist.all_reduce(g)


# %% no samples count as one
# A rank without samples is counted as if it had one: with its 0 samples there are {total} in all.
def weighted_average_gradients(model, samples):
    samples = max(samples, 1)
    total = torch.tensor(float(samples))
    dist.all_reduce(total)
    for p in model.parameters():
        g = torch.zeros_like(p) if p.grad is None else p.grad * samples
        dist.all_reduce(g)
        p.grad = g / total.item()


# %% divided by all samples, but not weighted
# The gradients are summed as they are and divided by the number of all samples, {total}. A rank's gradient
# is already a mean: multiply it by the rank's own `samples` before you sum.
def weighted_average_gradients(model, samples):
    total = torch.tensor(float(samples))
    dist.all_reduce(total)
    for p in model.parameters():
        g = torch.zeros_like(p) if p.grad is None else p.grad
        dist.all_reduce(g)
        p.grad = g / total


# %% counts in the gradients' dtype of a GPU
# The number of samples is not exact: float16 counts exactly only up to 2,048, bfloat16 up to 256. Use
# float32 or int64.
def weighted_average_gradients(model, samples):
    total = torch.tensor(float(samples), dtype=torch.bfloat16)
    dist.all_reduce(total)
    for p in model.parameters():
        g = torch.zeros_like(p) if p.grad is None else p.grad * samples
        dist.all_reduce(g)
        p.grad = g / total.item()
