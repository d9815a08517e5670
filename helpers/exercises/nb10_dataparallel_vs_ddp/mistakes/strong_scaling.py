from statistics import mean, median, quantiles, stdev


# %% all samples on each rank
# That is the time with all samples on each rank: strong scaling shares them out, `samples // ranks` for
# each.
def strong_scaling(measure, worlds, samples):
    found = {}
    for p in worlds:
        measure(p, samples)
        first, middle, third = quantiles((measure(p, samples) for _ in range(21)), n=4)
        found[p] = (middle, third - first)
    return {p: (s, spread, found[1][0] / (p * s)) for p, (s, spread) in found.items()}


# %% the speed-up
# That is the speed-up T(1) / T(p); the efficiency is that, divided by p.
def strong_scaling(measure, worlds, samples):
    found = {}
    for p in worlds:
        measure(p, samples // p)
        first, middle, third = quantiles((measure(p, samples // p) for _ in range(21)), n=4)
        found[p] = (middle, third - first)
    return {p: (s, spread, found[1][0] / s) for p, (s, spread) in found.items()}


# %% upside down
# It is upside down.
def strong_scaling(measure, worlds, samples):
    found = {}
    for p in worlds:
        measure(p, samples // p)
        first, middle, third = quantiles((measure(p, samples // p) for _ in range(21)), n=4)
        found[p] = (middle, third - first)
    return {p: (s, spread, s * p / found[1][0]) for p, (s, spread) in found.items()}


# %% mean and standard deviation
# If the formula is right, it is the times: leave each setting's first lap out, and take the median of
# about 20 others. First laps are slow, and now and then one is far too long.
def strong_scaling(measure, worlds, samples):
    found = {}
    for p in worlds:
        laps = [measure(p, samples // p) for _ in range(20)]
        found[p] = (mean(laps[1:]), stdev(laps[1:]))
    return {p: (s, spread, found[1][0] / (p * s)) for p, (s, spread) in found.items()}


# %% one lap
# If the formula is right, it is the times: leave each setting's first lap out, and take the median of
# about 20 others. First laps are slow, and now and then one is far too long.
def strong_scaling(measure, worlds, samples):
    found = {p: measure(p, samples // p) for p in worlds}
    return {p: (s, 0.0, found[1] / (p * s)) for p, s in found.items()}


# %% milliseconds
# Seconds: no other unit.
def strong_scaling(measure, worlds, samples):
    found = {}
    for p in worlds:
        laps = [1000 * measure(p, samples // p) for _ in range(21)][1:]
        first, middle, third = quantiles(laps, n=4)
        found[p] = (middle, third - first)
    return {p: (s, spread, found[1][0] / (p * s)) for p, (s, spread) in found.items()}


# %% the first of `worlds` as the baseline
# That is against the ranks that come first in `worlds`: the baseline is 1 rank.
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
# In `worlds` the 1 need not come first (here: {worlds}): measure all, and compute the efficiencies after
# that.
def strong_scaling(measure, worlds, samples):
    found = {}
    for p in worlds:
        measure(p, samples // p)
        first, middle, third = quantiles((measure(p, samples // p) for _ in range(21)), n=4)
        found[p] = (middle, third - first, found[1][0] / (p * middle) if p > 1 else 1.0)
    return found
