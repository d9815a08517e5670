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


# %% wrong: samples shared out | wrong | says: in weak scaling each rank keeps
def weak_scaling(measure, worlds, samples):
    found = timed(lambda p, n: measure(p, n // p), worlds, samples)
    return {p: (s, spread, found[1][0] / s) for p, (s, spread) in found.items()}


# %% wrong: strong scaling's formula | wrong | says: strong scaling's formula
def weak_scaling(measure, worlds, samples):
    found = timed(measure, worlds, samples)
    return {p: (s, spread, found[1][0] / (p * s)) for p, (s, spread) in found.items()}


# %% wrong: the gain in throughput | wrong | says: divide it by p
def weak_scaling(measure, worlds, samples):
    found = timed(measure, worlds, samples)
    return {p: (s, spread, p * found[1][0] / s) for p, (s, spread) in found.items()}


# %% wrong: upside down | wrong | says: upside down
def weak_scaling(measure, worlds, samples):
    found = timed(measure, worlds, samples)
    return {p: (s, spread, s / found[1][0]) for p, (s, spread) in found.items()}


# %% wrong: the mean | wrong | says: take the median of about 20
def weak_scaling(measure, worlds, samples):
    laps = {p: [measure(p, samples) for _ in range(20)][1:] for p in worlds}
    return {p: (mean(laps[p]), 0.1, mean(laps[1]) / mean(laps[p])) for p in worlds}


# %% wrong: five laps, so that a quartile meets the disturbed one | wrong | says: of about 20 laps
def weak_scaling(measure, worlds, samples):
    found = {}
    for p in worlds:
        first, middle, third = quantiles([measure(p, samples) for _ in range(6)][1:], n=4)
        found[p] = (middle, third - first)
    return {p: (s, spread, found[1][0] / s) for p, (s, spread) in found.items()}


# %% wrong: the first of `worlds` as the baseline | wrong | says: baseline is 1 rank
def weak_scaling(measure, worlds, samples):
    found = {}
    for p in worlds:
        measure(p, samples)
        first, middle, third = quantiles((measure(p, samples) for _ in range(21)), n=4)
        if p == worlds[0]:
            base = middle
        found[p] = (middle, third - first, base / middle)
    return found


# %% wrong: 1 rank taken to be the first | crashed | says: 1 need not come first
def weak_scaling(measure, worlds, samples):
    found = {}
    for p in worlds:
        measure(p, samples)
        first, middle, third = quantiles((measure(p, samples) for _ in range(21)), n=4)
        found[p] = (middle, third - first, found[1][0] / middle if p > 1 else 1.0)
    return found
