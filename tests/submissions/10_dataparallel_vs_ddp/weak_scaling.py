from statistics import mean, median, quantiles


def timed(measure, worlds, samples):
    found = {}
    for p in worlds:
        measure(p, samples)
        first, middle, third = quantiles((measure(p, samples) for _ in range(21)), n=4)
        found[p] = (middle, third - first)
    return found


# %% right: quartiles
def weak_scaling(measure, worlds, samples):
    found = timed(measure, worlds, samples)
    return {p: (s, spread, found[1][0] / s) for p, (s, spread) in found.items()}


# %% right: numpy
import numpy as np


def weak_scaling(measure, worlds, samples):
    laps = {p: np.array([measure(p, samples) for _ in range(24)])[1:] for p in worlds}
    times = {p: np.median(laps[p]) for p in worlds}
    iqr = {p: np.subtract(*np.percentile(laps[p], [75, 25])) for p in worlds}
    return {p: np.array([times[p], iqr[p], times[1] / times[p]]) for p in worlds}


# %% wrong: five laps, so that a quartile meets the disturbed one | wrong | says: of about 20 timings
def weak_scaling(measure, worlds, samples):
    found = {}
    for p in worlds:
        first, middle, third = quantiles([measure(p, samples) for _ in range(6)][1:], n=4)
        found[p] = (middle, third - first)
    return {p: (s, spread, found[1][0] / s) for p, (s, spread) in found.items()}
