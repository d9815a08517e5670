from statistics import mean, median, quantiles, stdev


# %% all samples on each rank
# This is the time of a step with all samples on each rank: in strong scaling each rank has `samples //
# ranks`.
def strong_scaling(measure, worlds, samples):
    found = {}
    for p in worlds:
        measure(p, samples)
        first, middle, third = quantiles((measure(p, samples) for _ in range(21)), n=4)
        found[p] = (middle, third - first)
    return {p: (s, spread, found[1][0] / (p * s)) for p, (s, spread) in found.items()}


# %% the speed-up
# This is the speed-up T(1) / T(p): divide it by p to get the efficiency.
def strong_scaling(measure, worlds, samples):
    found = {}
    for p in worlds:
        measure(p, samples // p)
        first, middle, third = quantiles((measure(p, samples // p) for _ in range(21)), n=4)
        found[p] = (middle, third - first)
    return {p: (s, spread, found[1][0] / s) for p, (s, spread) in found.items()}


# %% upside down
# The efficiency is upside down: T(1) belongs in the numerator.
def strong_scaling(measure, worlds, samples):
    found = {}
    for p in worlds:
        measure(p, samples // p)
        first, middle, third = quantiles((measure(p, samples // p) for _ in range(21)), n=4)
        found[p] = (middle, third - first)
    return {p: (s, spread, s * p / found[1][0]) for p, (s, spread) in found.items()}


# %% mean and standard deviation
# Check the formula first. If it is right, the times are not: leave out each setting's first timing, and
# take the median of about 20 others. First timings are slow, and now and then one is far too long.
def strong_scaling(measure, worlds, samples):
    found = {}
    for p in worlds:
        laps = [measure(p, samples // p) for _ in range(20)]
        found[p] = (mean(laps[1:]), stdev(laps[1:]))
    return {p: (s, spread, found[1][0] / (p * s)) for p, (s, spread) in found.items()}


# %% one lap
# Check the formula first. If it is right, the times are not: leave out each setting's first timing, and
# take the median of about 20 others. First timings are slow, and now and then one is far too long.
def strong_scaling(measure, worlds, samples):
    found = {p: measure(p, samples // p) for p in worlds}
    return {p: (s, 0.0, found[1] / (p * s)) for p, s in found.items()}


# %% milliseconds
# Return seconds, not milliseconds or another unit.
def strong_scaling(measure, worlds, samples):
    found = {}
    for p in worlds:
        laps = [1000 * measure(p, samples // p) for _ in range(21)][1:]
        first, middle, third = quantiles(laps, n=4)
        found[p] = (middle, third - first)
    return {p: (s, spread, found[1][0] / (p * s)) for p, (s, spread) in found.items()}


# %% the first of `worlds` as the baseline
# The baseline is the first number of ranks in `worlds`: it must be 1 rank.
def strong_scaling(measure, worlds, samples):
    found = {}
    for p in worlds:
        measure(p, samples // p)
        first, middle, third = quantiles((measure(p, samples // p) for _ in range(21)), n=4)
        if p == worlds[0]:
            base = middle
        found[p] = (middle, third - first, base / (p * middle))
    return found


# %% 1 rank taken to be the first | crashed
# The 1 need not come first in `worlds` (here: {worlds}): measure all, then compute the efficiencies.
def strong_scaling(measure, worlds, samples):
    found = {}
    for p in worlds:
        measure(p, samples // p)
        first, middle, third = quantiles((measure(p, samples // p) for _ in range(21)), n=4)
        found[p] = (middle, third - first, found[1][0] / (p * middle) if p > 1 else 1.0)
    return found
