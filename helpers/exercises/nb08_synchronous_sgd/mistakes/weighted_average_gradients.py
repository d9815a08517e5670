# %% the plain average
# The ranks have {counts} samples, {total} in all. Multiply each gradient by its own number, add up, and
# divide by the number of all samples.
def weighted_average_gradients(model, samples):
    for p in model.parameters():
        if p.grad is None:
            p.grad = torch.zeros_like(p)
        dist.all_reduce(p.grad)
        p.grad /= dist.get_world_size()


# %% weighted, then divided by the world size
# The ranks have {counts} samples, {total} in all. Multiply each gradient by its own number, add up, and
# divide by the number of all samples.
def weighted_average_gradients(model, samples):
    for p in model.parameters():
        if p.grad is None:
            p.grad = torch.zeros_like(p)
        p.grad *= samples
        dist.all_reduce(p.grad)
        p.grad /= dist.get_world_size()


# %% divided by its own number
# The ranks have {counts} samples, {total} in all. Multiply each gradient by its own number, add up, and
# divide by the number of all samples.
def weighted_average_gradients(model, samples):
    for p in model.parameters():
        if p.grad is None:
            p.grad = torch.zeros_like(p)
        p.grad *= samples
        dist.all_reduce(p.grad)
        p.grad /= max(1, samples)


# %% the rank without samples returns early | deadlocked
# Rank {empty} has no samples and so no gradients. It must make the same calls as the others: let it hand
# in zeros.
def weighted_average_gradients(model, samples):
    if samples == 0:
        return
    total = torch.tensor(float(samples))
    dist.all_reduce(total)
    for p in model.parameters():
        p.grad *= samples / total
        dist.all_reduce(p.grad)


# %% the mean of the ranks that have samples
# The ranks have {counts} samples, {total} in all. Multiply each gradient by its own number, add up, and
# divide by the number of all samples.
def weighted_average_gradients(model, samples):
    ranks = torch.tensor(float(samples > 0))
    dist.all_reduce(ranks)
    for p in model.parameters():
        if p.grad is None:
            p.grad = torch.zeros_like(p)
        dist.all_reduce(p.grad)
        p.grad /= ranks


# %% 0 / 0
# The mean loss of no samples is NaN, and NaN times 0 is NaN: begin from zeros.
def weighted_average_gradients(model, samples):
    total = torch.tensor(float(samples))
    dist.all_reduce(total)
    for p in model.parameters():
        if p.grad is None:
            p.grad = torch.zeros_like(p) / samples
        p.grad *= samples / total
        dist.all_reduce(p.grad)


# %% does nothing about None | crashed
# Where a rank has no samples its `p.grad` is None: begin from zeros there.
def weighted_average_gradients(model, samples):
    total = torch.tensor(float(samples))
    dist.all_reduce(total)
    for p in model.parameters():
        p.grad *= samples / total
        dist.all_reduce(p.grad)


# %% divided by the number of samples and by the world size
# This is right but for a division: it is divided by the number of all samples, and by the world size as
# well.
def weighted_average_gradients(model, samples):
    total = torch.tensor(float(samples))
    dist.all_reduce(total)
    for p in model.parameters():
        g = torch.zeros_like(p) if p.grad is None else p.grad
        g *= samples / total
        dist.all_reduce(g, op=dist.ReduceOp.AVG)
        p.grad = g


# %% weighted, but not divided
# These are the sums over all samples: divide by their number, {total}.
def weighted_average_gradients(model, samples):
    for p in model.parameters():
        g = torch.zeros_like(p) if p.grad is None else p.grad
        g *= samples
        dist.all_reduce(g)
        p.grad = g


# %% forgets to write back where it was None
# The mean belongs to every rank: set `p.grad` also where it was None.
def weighted_average_gradients(model, samples):
    total = torch.tensor(float(samples))
    dist.all_reduce(total)
    for p in model.parameters():
        g = torch.zeros_like(p) if p.grad is None else p.grad
        g *= samples / total
        dist.all_reduce(g)


# %% no sum over the ranks
# This is its own summand of the mean, or nothing: the others' are missing.
def weighted_average_gradients(model, samples):
    total = torch.tensor(float(samples))
    dist.all_reduce(total)
    for p in model.parameters():
        if p.grad is not None:
            p.grad *= samples / total


# %% an average beside p.grad
# The gradients are as they were: write the mean into `p.grad`.
def weighted_average_gradients(model, samples):
    total = torch.tensor(float(samples))
    dist.all_reduce(total)
    for p in model.parameters():
        g = torch.zeros_like(p) if p.grad is None else p.grad.clone()
        g *= samples / total
        dist.all_reduce(g)
