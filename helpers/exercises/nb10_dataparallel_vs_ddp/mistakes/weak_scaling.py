from statistics import mean, median, quantiles


def timed(measure, worlds, samples):
    found = {}
    for p in worlds:
        measure(p, samples)
        first, middle, third = quantiles((measure(p, samples) for _ in range(21)), n=4)
        found[p] = (middle, third - first)
    return found


# %% samples shared out
# That is the time with the samples shared out: in weak scaling each rank keeps `samples`.
def weak_scaling(measure, worlds, samples):
    found = timed(lambda p, n: measure(p, n // p), worlds, samples)
    return {p: (s, spread, found[1][0] / s) for p, (s, spread) in found.items()}


# %% strong scaling's formula
# That is strong scaling's formula. Here p ranks do p times the work, so that T(p) = T(1) is ideal.
def weak_scaling(measure, worlds, samples):
    found = timed(measure, worlds, samples)
    return {p: (s, spread, found[1][0] / (p * s)) for p, (s, spread) in found.items()}


# %% the gain in throughput
# That is how much more work gets done; divide it by p.
def weak_scaling(measure, worlds, samples):
    found = timed(measure, worlds, samples)
    return {p: (s, spread, p * found[1][0] / s) for p, (s, spread) in found.items()}


# %% upside down
# It is upside down: T(1) stands above.
def weak_scaling(measure, worlds, samples):
    found = timed(measure, worlds, samples)
    return {p: (s, spread, s / found[1][0]) for p, (s, spread) in found.items()}


# %% the mean
# If the formula is right, it is the times: leave each setting's first lap out, and take the median of
# about 20 others. First laps are slow, and now and then one is far too long.
def weak_scaling(measure, worlds, samples):
    laps = {p: [measure(p, samples) for _ in range(20)][1:] for p in worlds}
    return {p: (mean(laps[p]), 0.1, mean(laps[1]) / mean(laps[p])) for p in worlds}


# %% the first of `worlds` as the baseline
# That is against the ranks that come first in `worlds`: the baseline is 1 rank.
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
# In `worlds` the 1 need not come first (here: {worlds}): measure all, and compute the efficiencies after
# that.
def weak_scaling(measure, worlds, samples):
    found = {}
    for p in worlds:
        measure(p, samples)
        first, middle, third = quantiles((measure(p, samples) for _ in range(21)), n=4)
        found[p] = (middle, third - first, found[1][0] / middle if p > 1 else 1.0)
    return found
