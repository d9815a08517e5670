from statistics import mean, median, quantiles


def timed(measure, worlds, samples):
    found = {}
    for p in worlds:
        measure(p, samples)
        first, middle, third = quantiles((measure(p, samples) for _ in range(21)), n=4)
        found[p] = (middle, third - first)
    return found


# %% samples shared out
# This is the time of a step with the samples divided among the ranks: in weak scaling each rank has
# `samples`.
def weak_scaling(measure, worlds, samples):
    found = timed(lambda p, n: measure(p, n // p), worlds, samples)
    return {p: (s, spread, found[1][0] / s) for p, (s, spread) in found.items()}


# %% strong scaling's formula
# This is strong scaling's formula. In weak scaling p ranks do p times the work, so the ideal is T(p) =
# T(1).
def weak_scaling(measure, worlds, samples):
    found = timed(measure, worlds, samples)
    return {p: (s, spread, found[1][0] / (p * s)) for p, (s, spread) in found.items()}


# %% the gain in throughput
# This is how many times more work is done: divide it by p.
def weak_scaling(measure, worlds, samples):
    found = timed(measure, worlds, samples)
    return {p: (s, spread, p * found[1][0] / s) for p, (s, spread) in found.items()}


# %% upside down
# The efficiency is upside down: T(1) belongs in the numerator.
def weak_scaling(measure, worlds, samples):
    found = timed(measure, worlds, samples)
    return {p: (s, spread, s / found[1][0]) for p, (s, spread) in found.items()}


# %% the mean
# Check the formula first. If it is right, the times are not: leave out each setting's first timing, and
# take the median of about 20 others. First timings are slow, and now and then one is far too long.
def weak_scaling(measure, worlds, samples):
    laps = {p: [measure(p, samples) for _ in range(20)][1:] for p in worlds}
    return {p: (mean(laps[p]), 0.1, mean(laps[1]) / mean(laps[p])) for p in worlds}


# %% the first of `worlds` as the baseline
# The baseline is the first number of ranks in `worlds`: it must be 1 rank.
def weak_scaling(measure, worlds, samples):
    found = {}
    for p in worlds:
        measure(p, samples)
        first, middle, third = quantiles((measure(p, samples) for _ in range(21)), n=4)
        if p == worlds[0]:
            base = middle
        found[p] = (middle, third - first, base / middle)
    return found


# %% 1 rank taken to be the first | crashed
# The 1 need not come first in `worlds` (here: {worlds}): measure all, then compute the efficiencies.
def weak_scaling(measure, worlds, samples):
    found = {}
    for p in worlds:
        measure(p, samples)
        first, middle, third = quantiles((measure(p, samples) for _ in range(21)), n=4)
        found[p] = (middle, third - first, found[1][0] / middle if p > 1 else 1.0)
    return found
