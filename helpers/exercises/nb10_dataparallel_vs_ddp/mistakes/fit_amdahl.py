from statistics import linear_regression


# %% what is left at the largest world | crashed
# `times` has not every number of ranks: here they are {worlds}. T(1) need not be measured: it is a + b,
# the height of the fitted line at 1 / p = 1.
def fit_amdahl(times, ranks):
    s = times[max(times)] / times[1]
    return s, 1 / (s + (1 - s) / ranks)


# %% takes for granted that 1 rank was measured | crashed
# `times` has not every number of ranks: here they are {worlds}. T(1) need not be measured: it is a + b,
# the height of the fitted line at 1 / p = 1.
def fit_amdahl(times, ranks):
    b, a = linear_regression([1 / p for p in times], list(times.values()))
    s = a / times[1]
    return s, 1 / (s + (1 - s) / ranks)
