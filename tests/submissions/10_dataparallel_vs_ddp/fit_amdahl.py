from statistics import linear_regression


# %% right: the statistics module
def fit_amdahl(times, ranks):
    slope, height = linear_regression([1 / p for p in times], list(times.values()))
    s = height / (height + slope)
    return s, 1 / (s + (1 - s) / ranks)


# %% right: polyfit
import numpy as np


def fit_amdahl(times, ranks):
    p = np.array(list(times), dtype=float)
    b, a = np.polyfit(1 / p, np.array(list(times.values())), 1)
    return a / (a + b), (a + b) / (a + b / ranks)


# %% right: least squares on relative errors, with torch
def fit_amdahl(times, ranks):
    p = torch.tensor(list(times), dtype=torch.float64)
    t = torch.tensor(list(times.values()), dtype=torch.float64)
    matrix = torch.stack([torch.ones_like(p), 1 / p], dim=1) / t[:, None]
    a, b = torch.linalg.lstsq(matrix, torch.ones(len(p), 1, dtype=torch.float64)).solution.flatten()
    s = a / (a + b)
    return s, 1 / (s + (1 - s) / ranks)


# %% wrong: through the smallest and the largest world | wrong | says: These times are noisy
def fit_amdahl(times, ranks):
    p, q = min(times), max(times)
    b = (times[p] - times[q]) / (1 / p - 1 / q)
    a = times[p] - b / p
    return a / (a + b), (a + b) / (a + b / ranks)


# %% wrong: the mean of Karp and Flatt, the smallest world taken for one rank | wrong | says: serial is [\d.]+, the truth is
def fit_amdahl(times, ranks):
    one = times[min(times)]
    shares = [(p * t / one - 1) / (p - 1) for p, t in times.items() if p > min(times)]
    s = sum(shares) / len(shares)
    return s, 1 / (s + (1 - s) / ranks)


# %% wrong: the limit | wrong | says: limit for infinitely many
def fit_amdahl(times, ranks):
    slope, height = linear_regression([1 / p for p in times], list(times.values()))
    s = height / (height + slope)
    return s, 1 / s


# %% wrong: Gustafson's law | wrong | says: Gustafson
def fit_amdahl(times, ranks):
    slope, height = linear_regression([1 / p for p in times], list(times.values()))
    s = height / (height + slope)
    return s, ranks - s * (ranks - 1)


# %% wrong: the other share | wrong | says: the ranks divide among them
def fit_amdahl(times, ranks):
    slope, height = linear_regression([1 / p for p in times], list(times.values()))
    s = slope / (height + slope)
    return s, 1 / (s + (1 - s) / ranks)


# %% wrong: per cent | wrong | says: not a percentage
def fit_amdahl(times, ranks):
    slope, height = linear_regression([1 / p for p in times], list(times.values()))
    s = height / (height + slope)
    return 100 * s, 1 / (s + (1 - s) / ranks)


# %% wrong: a line over p | wrong | says: over 1 / p
def fit_amdahl(times, ranks):
    slope, height = linear_regression(list(times), list(times.values()))
    s = 1 + slope * max(times) / height
    return s, 1 / (s + (1 - s) / ranks)


# %% wrong: the height in seconds | wrong | says: That is a, in seconds
def fit_amdahl(times, ranks):
    slope, height = linear_regression([1 / p for p in times], list(times.values()))
    return height, 1 / (height + (1 - height) / ranks)


# %% wrong: the speed-up alone | wrong | says: return two numbers
def fit_amdahl(times, ranks):
    slope, height = linear_regression([1 / p for p in times], list(times.values()))
    return (height + slope) / (height + slope / ranks)


# %% wrong: through the first two points | wrong | says: two or three of the points
def fit_amdahl(times, ranks):
    p, q = sorted(times)[:2]
    b = (times[p] - times[q]) / (1 / p - 1 / q)
    a = times[p] - b / p
    return a / (a + b), (a + b) / (a + b / ranks)


# %% wrong: fitted over p | wrong | says: straight line over 1 / p
def fit_amdahl(times, ranks):
    b, a = linear_regression(list(times), list(times.values()))
    s = a / (a + b)
    return s, 1 / (s + (1 - s) / ranks)


# %% wrong: what is left at the largest world | wrong | says: still contains the parallel part
def fit_amdahl(times, ranks):
    s = times[max(times)] / times[1]
    return s, 1 / (s + (1 - s) / ranks)
