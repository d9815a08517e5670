from statistics import linear_regression


# %% takes for granted that 1 rank was measured | crashed
# `times` need not contain every number of ranks; here it has {worlds}. T(1) need not be measured: it is a +
# b, the fitted line at 1 / p = 1.
def fit_amdahl(times, ranks):
    b, a = linear_regression([1 / p for p in times], list(times.values()))
    s = a / times[1]
    return s, 1 / (s + (1 - s) / ranks)
