# %% the mean of the means
# This is the mean of the ranks' means and variances. It is right only where all ranks have the same number
# of elements: add up sums and counts.
def global_mean_and_variance(rank, world_size, x):
    t = torch.stack([x.double().mean(), x.double().var(correction=0)])
    dist.all_reduce(t)
    mean, variance = (t / world_size).tolist()
    return mean, variance


# %% float32
# The mean is right, the variance is not: float32 has about 7 digits, and the sum of squares needs more
# here. Convert to float64 before you square, and add up in float64.
def global_mean_and_variance(rank, world_size, x):
    x = x.float()
    t = torch.stack([torch.tensor(float(len(x))), x.sum(), (x * x).sum()])
    dist.all_reduce(t)
    n, s, q = t.tolist()
    return s / n, q / n - (s / n) ** 2


# %% float64 only after the squares
# The mean is right, the variance is not: float32 has about 7 digits, and the sum of squares needs more
# here. Convert to float64 before you square, and add up in float64.
def global_mean_and_variance(rank, world_size, x):
    t = torch.tensor([len(x), x.sum(), (x * x).sum()], dtype=torch.float64)
    dist.all_reduce(t)
    n, s, q = t.tolist()
    return s / n, q / n - (s / n) ** 2


# %% n - 1
# This variance is divided by n - 1. All numbers are known here: divide by n.
def global_mean_and_variance(rank, world_size, x):
    x = x.double()
    t = torch.tensor([len(x), x.sum(), (x * x).sum()], dtype=torch.float64)
    dist.all_reduce(t)
    n, s, q = t.tolist()
    return s / n, (q - s * s / n) / (n - 1)


# %% the standard deviation
# The second number is the standard deviation. Return its square, the variance.
def global_mean_and_variance(rank, world_size, x):
    x = x.double()
    t = torch.tensor([len(x), x.sum(), (x * x).sum()], dtype=torch.float64)
    dist.all_reduce(t)
    n, s, q = t.tolist()
    return s / n, (q / n - (s / n) ** 2) ** 0.5


# %% rank 0 returns, the others do not
# Only rank 0 returns the two numbers; the others return None. Every rank has to return them.
def global_mean_and_variance(rank, world_size, x):
    x = x.double()
    t = torch.tensor([len(x), x.sum(), (x * x).sum()], dtype=torch.float64)
    dist.all_reduce(t)
    if rank == 0:
        n, s, q = t.tolist()
        return s / n, q / n - (s / n) ** 2


# %% Python's sums, put into a tensor of float32
# The mean is right, the variance is not: float32 has about 7 digits, and the sum of squares needs more
# here. Convert to float64 before you square, and add up in float64.
def global_mean_and_variance(rank, world_size, x):
    numbers = x.tolist()
    sums = torch.tensor([len(numbers), sum(numbers), sum(v * v for v in numbers)]).double()
    dist.all_reduce(sums)
    n, total, squares = sums.tolist()
    return total / n, squares / n - (total / n) ** 2


# %% the mean of the variances
# The variance is the mean of the ranks' own variances: it leaves out how far their means are apart. Add up
# the squares of the numbers.
def global_mean_and_variance(rank, world_size, x):
    x = x.double()
    own = x.var(unbiased=False) * len(x) if len(x) else 0
    t = torch.tensor([x.sum(), own, len(x)], dtype=torch.float64)
    dist.all_reduce(t)
    s, q, n = t.tolist()
    return s / n, q / n


# %% sums packed into float32
# The sums are sent as float32, which has about 7 digits: the variance needs more. Send them as float64.
def global_mean_and_variance(rank, world_size, x):
    x = x.double()
    t = torch.tensor([x.sum().item(), (x * x).sum().item(), len(x)], dtype=torch.float32)
    dist.all_reduce(t)
    s, q, n = t.tolist()
    return s / n, q / n - (s / n) ** 2


# %% variance before the mean
# The two numbers are swapped: the mean comes first.
def global_mean_and_variance(rank, world_size, x):
    x = x.double()
    t = torch.tensor([len(x), x.sum(), (x * x).sum()], dtype=torch.float64)
    dist.all_reduce(t)
    n, s, q = t.tolist()
    return q / n - (s / n) ** 2, s / n


# %% the mean of the squares
# The second number is the mean of the squares. Subtract the square of the mean.
def global_mean_and_variance(rank, world_size, x):
    x = x.double()
    t = torch.tensor([len(x), x.sum(), (x * x).sum()], dtype=torch.float64)
    dist.all_reduce(t)
    n, s, q = t.tolist()
    return s / n, q / n


# %% squared in float32, added up in float64
# The mean is right, the variance is not: float32 has about 7 digits, and the sum of squares needs more
# here. Convert to float64 before you square, and add up in float64.
def global_mean_and_variance(rank, world_size, x):
    sums = [x.sum(dtype=torch.float64), (x * x).sum(dtype=torch.float64), len(x)]
    t = torch.tensor(sums, dtype=torch.float64)
    dist.all_reduce(t)
    s, q, n = t.tolist()
    return s / n, q / n - (s / n) ** 2
