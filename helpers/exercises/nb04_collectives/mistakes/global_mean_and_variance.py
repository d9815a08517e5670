# %% the mean of the means
# That is the mean of the ranks' means. It is right only where all ranks have as many numbers: add up sums
# and counts.
def global_mean_and_variance(rank, world_size, x):
    t = torch.stack([x.double().mean(), x.double().var(correction=0)])
    dist.all_reduce(t)
    mean, variance = (t / world_size).tolist()
    return mean, variance


# %% float32
# The mean is right, the variance is not: the sum of squares is large here, and float32 keeps about 7
# digits of it. Use float64 before you square, and for the tensor of the sums: `dtype=torch.float64`.
def global_mean_and_variance(rank, world_size, x):
    x = x.float()
    t = torch.stack([torch.tensor(float(len(x))), x.sum(), (x * x).sum()])
    dist.all_reduce(t)
    n, s, q = t.tolist()
    return s / n, q / n - (s / n) ** 2


# %% float64 only after the squares
# The mean is right, the variance is not: the sum of squares is large here, and float32 keeps about 7
# digits of it. Use float64 before you square, and for the tensor of the sums: `dtype=torch.float64`.
def global_mean_and_variance(rank, world_size, x):
    t = torch.tensor([len(x), x.sum(), (x * x).sum()], dtype=torch.float64)
    dist.all_reduce(t)
    n, s, q = t.tolist()
    return s / n, q / n - (s / n) ** 2


# %% n - 1
# That is the variance with n - 1 below. Here all numbers are known: divide by n.
def global_mean_and_variance(rank, world_size, x):
    x = x.double()
    t = torch.tensor([len(x), x.sum(), (x * x).sum()], dtype=torch.float64)
    dist.all_reduce(t)
    n, s, q = t.tolist()
    return s / n, (q - s * s / n) / (n - 1)


# %% the standard deviation
# That is the standard deviation, the root of the variance.
def global_mean_and_variance(rank, world_size, x):
    x = x.double()
    t = torch.tensor([len(x), x.sum(), (x * x).sum()], dtype=torch.float64)
    dist.all_reduce(t)
    n, s, q = t.tolist()
    return s / n, (q / n - (s / n) ** 2) ** 0.5


# %% rank 0 returns, the others do not
# A rank that has to return something returns nothing: is there a `return` on every path?
def global_mean_and_variance(rank, world_size, x):
    x = x.double()
    t = torch.tensor([len(x), x.sum(), (x * x).sum()], dtype=torch.float64)
    dist.all_reduce(t)
    if rank == 0:
        n, s, q = t.tolist()
        return s / n, q / n - (s / n) ** 2


# %% Python's sums, put into a tensor of float32
# The mean is right, the variance is not: the sum of squares is large here, and float32 keeps about 7
# digits of it. Use float64 before you square, and for the tensor of the sums: `dtype=torch.float64`.
def global_mean_and_variance(rank, world_size, x):
    numbers = x.tolist()
    sums = torch.tensor([len(numbers), sum(numbers), sum(v * v for v in numbers)]).double()
    dist.all_reduce(sums)
    n, total, squares = sums.tolist()
    return total / n, squares / n - (total / n) ** 2
