from math import log2


def meet(alpha, beta, p):
    d, s = log2(p), 2 * (p - 1)
    return alpha, beta, alpha * (s - d) / (beta * (d - s / p))


# %% wrong: least squares through all laps | wrong | says: alpha is


# %% wrong: only the length comes back | wrong | says: three numbers must come back


# %% wrong: only for the numbers of ranks that one has seen | crashed | says: KeyError
def crossover(measure, ranks):
    def time(nbytes):
        return sorted(measure(nbytes) for _ in range(21))[10]

    alpha = time(0)
    beta = (time(8_000_000) - alpha) / 8_000_000
    d, s = {4: 2, 8: 3, 16: 4}[ranks], 2 * (ranks - 1)
    return alpha, beta, alpha * (s - d) / (beta * (d - s / ranks))


# %% wrong: the length in elements of float32 | wrong | says: the length is
def crossover(measure, ranks):
    from math import log2

    def time(nbytes):
        return sorted(measure(nbytes) for _ in range(21))[10]

    alpha = time(0)
    beta = (time(8_000_000) - alpha) / 8_000_000
    d, s = log2(ranks), 2 * (ranks - 1)
    return alpha, beta, alpha * (s - d) / (beta * (d - s / ranks)) / 4
