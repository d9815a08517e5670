from statistics import mean, median, quantiles, stdev


# %% right: quartiles of twenty laps
def strong_scaling(measure, worlds, samples):
    found = {}
    for p in worlds:
        measure(p, samples // p)
        first, middle, third = quantiles((measure(p, samples // p) for _ in range(21)), n=4)
        found[p] = (middle, third - first)
    return {p: (s, spread, found[1][0] / (p * s)) for p, (s, spread) in found.items()}


# %% right: in turns, with torch
def strong_scaling(measure, worlds, samples):
    laps = {p: [] for p in worlds}
    for lap in range(24):
        for p in worlds:
            laps[p].append(measure(p, samples / p))
    rows = {}
    for p in worlds:
        t = torch.tensor(laps[p][1:], dtype=torch.float64)
        low, mid, high = t.quantile(torch.tensor([0.25, 0.5, 0.75], dtype=torch.float64)).tolist()
        rows[p] = [mid, high - low]
    for p in worlds:
        rows[p].append(rows[1][0] / rows[p][0] / p)
    return rows


# %% wrong: the fastest lap, and what lies between the 10 and the 80 % points | wrong | says: is the shortest timing
def strong_scaling(measure, worlds, samples):
    found = {}
    for p in sorted(worlds):
        laps = sorted(measure(p, samples // p) for _ in range(30))
        found[p] = (laps[0], laps[24] - laps[3])
    one = found[1][0]
    return {p: (*found[p], one / found[p][0] / p) for p in found}


# %% wrong: median, but slowest minus fastest | wrong | says: too large for the timings
def strong_scaling(measure, worlds, samples):
    found = {}
    for p in worlds:
        laps = [measure(p, samples // p) for _ in range(20)][1:]
        found[p] = (median(laps), max(laps) - min(laps))
    return {p: (s, spread, found[1][0] / (p * s)) for p, (s, spread) in found.items()}


# %% wrong: no spread | wrong | says: these timings differ
def strong_scaling(measure, worlds, samples):
    found = {p: median(measure(p, samples // p) for _ in range(21)) for p in worlds}
    return {p: (s, 0.0, found[1] / (p * s)) for p, s in found.items()}


# %% wrong: a list | wrong | says: a dict must come back
def strong_scaling(measure, worlds, samples):
    found = {p: median(measure(p, samples // p) for _ in range(21)) for p in worlds}
    return [(s, 0.0, found[1] / (p * s)) for p, s in found.items()]


# %% wrong: efficiency of means, times of medians | wrong | says: seconds is right, but efficiency is [\d.]+, the truth
def strong_scaling(measure, worlds, samples):
    found = {}
    for p in worlds:
        laps = [measure(p, samples // p) for _ in range(21)][1:]
        first, middle, third = quantiles(laps, n=4)
        found[p] = (middle, third - first, mean(laps))
    return {p: (s, spread, found[1][2] / (p * m)) for p, (s, spread, m) in found.items()}


# %% wrong: half the distance between the quartiles | wrong | says: half the distance
def strong_scaling(measure, worlds, samples):
    found = {}
    for p in worlds:
        measure(p, samples // p)
        first, middle, third = quantiles((measure(p, samples // p) for _ in range(21)), n=4)
        found[p] = (middle, (third - first) / 2)
    return {p: (s, spread, found[1][0] / (p * s)) for p, (s, spread) in found.items()}


# %% wrong: the third quartile as the spread | wrong | says: is a quartile itself
def strong_scaling(measure, worlds, samples):
    found = {}
    for p in worlds:
        measure(p, samples // p)
        _, middle, third = quantiles((measure(p, samples // p) for _ in range(21)), n=4)
        found[p] = (middle, third)
    return {p: (s, spread, found[1][0] / (p * s)) for p, (s, spread) in found.items()}


# %% wrong: the quickest lap | wrong | says: is the shortest timing
def strong_scaling(measure, worlds, samples):
    found = {}
    for p in worlds:
        laps = [measure(p, samples // p) for _ in range(21)]
        first, _, third = quantiles(laps[1:], n=4)
        found[p] = (min(laps), third - first)
    return {p: (s, spread, found[1][0] / (p * s)) for p, (s, spread) in found.items()}


# %% right: numpy's percentiles of forty laps, the first five left out
import numpy as np


def strong_scaling(measure, worlds, samples):
    laps = {p: np.array([measure(p, samples // p) for _ in range(40)])[5:] for p in worlds}
    one = np.median(laps[1])
    return {
        p: (m := np.median(t), np.subtract(*np.percentile(t, [75, 25])), one / (p * m))
        for p, t in laps.items()
    }
