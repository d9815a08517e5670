from math import log2


def meet(alpha, beta, p):
    d, s = log2(p), 2 * (p - 1)
    return alpha, beta, alpha * (s - d) / (beta * (d - s / p))


# %% right: medians of two lengths
from statistics import median


def crossover(measure, ranks):
    def time(n):
        measure(n)
        return median(measure(n) for _ in range(21))

    alpha = time(1)
    return meet(alpha, (time(10_000_000) - alpha) / 10_000_000, ranks)


# %% right: the minimum of ten, first lap and all
def crossover(measure, ranks):
    short, long = 8, 2**24
    low, high = (min(measure(n) for _ in range(10)) for n in (short, long))
    beta = (high - low) / (long - short)
    return meet(low - beta * short, beta, ranks)


# %% right: least squares on medians, in torch
def crossover(measure, ranks):
    sizes = [2**k for k in range(3, 25, 3)]
    times = []
    for n in sizes:
        laps = torch.tensor([measure(n) for _ in range(25)], dtype=torch.float64)
        times.append(laps[1:].median())
    a = torch.stack([torch.ones(len(sizes)), torch.tensor(sizes).double()], 1).double()
    alpha, beta = torch.linalg.lstsq(a, torch.stack(times)[:, None]).solution.flatten()
    return meet(alpha, beta, ranks)


# %% right: a trimmed mean, and numpy's polyfit
import numpy as np


def crossover(measure, ranks):
    sizes = [1000 * 4**k for k in range(7)]
    times = []
    for n in sizes:
        measure(n)
        laps = sorted(measure(n) for _ in range(20))
        times.append(np.mean(laps[2:-2]))
    beta, alpha = np.polyfit(sizes, times, 1)
    return list(meet(alpha, beta, ranks))


# %% right: Theil and Sen: the median of all slopes
from itertools import combinations
from statistics import median


def crossover(measure, ranks):
    sizes = [100, 10_000, 100_000, 1_000_000, 4_000_000]
    points = [(n, measure(n)) for n in sizes for _ in range(16)]
    slopes = [(u - t) / (m - n) for (n, t), (m, u) in combinations(points, 2) if m != n]
    beta = median(slopes)
    alpha = median(t - beta * n for n, t in points)
    return meet(alpha, beta, ranks)


# %% wrong: least squares through all laps | wrong | says: alpha is .* the truth is
def crossover(measure, ranks):
    import numpy as np

    points = [
        (n, measure(n)) for n in (10, 1000, 100_000, 1_000_000, 10_000_000) for _ in range(20)
    ]
    beta, alpha = np.polyfit([n for n, _ in points], [t for _, t in points], 1)
    return meet(alpha, beta, ranks)


# %% wrong: only the length comes back | wrong | says: return three numbers
def crossover(measure, ranks):
    from statistics import median

    alpha = median(measure(1) for _ in range(20))
    beta = (median(measure(10**7) for _ in range(20)) - alpha) / 10**7
    return meet(alpha, beta, ranks)[2]


# %% wrong: only for the numbers of ranks that one has seen | crashed | says: KeyError: 32
def crossover(measure, ranks):
    def time(nbytes):
        return sorted(measure(nbytes) for _ in range(21))[10]

    alpha = time(0)
    beta = (time(8_000_000) - alpha) / 8_000_000
    d, s = {4: 2, 8: 3, 16: 4}[ranks], 2 * (ranks - 1)
    return alpha, beta, alpha * (s - d) / (beta * (d - s / ranks))


# %% wrong: the plain mean of twenty laps | wrong | says: take the median
def crossover(measure, ranks):
    def time(n):
        measure(n)
        return sum(measure(n) for _ in range(20)) / 20

    alpha = time(1)
    return meet(alpha, (time(10_000_000) - alpha) / 10_000_000, ranks)


# %% wrong: a single lap | wrong | says: take the median
def crossover(measure, ranks):
    alpha = measure(1)
    return meet(alpha, (measure(10_000_000) - alpha) / 10_000_000, ranks)


# %% wrong: the slowest lap | wrong | says: take the median
def crossover(measure, ranks):
    alpha = max(measure(1) for _ in range(20))
    return meet(alpha, (max(measure(10**7) for _ in range(20)) - alpha) / 10**7, ranks)


# %% wrong: short messages only | wrong | says: beta shows in long
def crossover(measure, ranks):
    from statistics import median

    alpha, later = (median(measure(n) for _ in range(20)) for n in (1, 512))
    return meet(alpha, (later - alpha) / 511, ranks)


# %% wrong: long messages only | wrong | says: alpha shows in short
def crossover(measure, ranks):
    from statistics import median

    time = median(measure(10**7) for _ in range(20))
    return meet(time, time / 10**7, ranks)


# %% wrong: microseconds | wrong | says: no other units
def crossover(measure, ranks):
    from statistics import median

    alpha = median(measure(1) for _ in range(20))
    beta = (median(measure(10**7) for _ in range(20)) - alpha) / 10**7
    _, _, n = meet(alpha, beta, ranks)
    return alpha * 1e6, beta * 1e6, n


# %% wrong: the ring is thought to send whole tensors | wrong | says: solve for n again
def crossover(measure, ranks):
    from statistics import median

    alpha = median(measure(1) for _ in range(20))
    beta = (median(measure(10**7) for _ in range(20)) - alpha) / 10**7
    return alpha, beta, alpha / beta


# %% wrong: the length in elements of float32 | wrong | says: solve for n again
def crossover(measure, ranks):
    from math import log2

    def time(nbytes):
        return sorted(measure(nbytes) for _ in range(21))[10]

    alpha = time(0)
    beta = (time(8_000_000) - alpha) / 8_000_000
    d, s = log2(ranks), 2 * (ranks - 1)
    return alpha, beta, alpha * (s - d) / (beta * (d - s / ranks)) / 4


# %% wrong: a single lap after one that warms up for all lengths | wrong | says: take the median
def crossover(measure, ranks):
    measure(1)
    alpha = measure(1)
    return meet(alpha, (measure(10_000_000) - alpha) / 10_000_000, ranks)


# %% wrong: the mean of five laps | wrong | says: take the median
def crossover(measure, ranks):
    def time(n):
        measure(n)
        return sum(measure(n) for _ in range(5)) / 5

    alpha = time(1)
    return meet(alpha, (time(10_000_000) - alpha) / 10_000_000, ranks)
