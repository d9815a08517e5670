from statistics import median


# %% right: medians of twenty
def measure_gil(measure, threads):
    def time(n):
        measure(n)
        return median(measure(n) for _ in range(20))

    longer = time(threads) / time(1)
    return threads / longer, (longer - 1) / (threads - 1)


# %% right: the fastest of ten
def measure_gil(measure, threads):
    one, many = (min(measure(n) for _ in range(10)) for n in (1, threads))
    return [threads * one / many, (many - one) / (one * (threads - 1))]


# %% right: in turns, a trimmed mean, torch's numbers
def measure_gil(measure, threads):
    laps = torch.tensor([[measure(1), measure(threads)] for _ in range(25)], dtype=torch.float64)
    one, many = laps.sort(dim=0).values[2:-5].mean(dim=0)
    speedup = threads * one / many
    return speedup, (threads / speedup - 1) / (threads - 1)


# %% wrong: one number | wrong | says: return two numbers
def measure_gil(measure, threads):
    longer = median(measure(threads) for _ in range(21)) / median(measure(1) for _ in range(21))
    return threads / longer


# %% wrong: printed | wrong | says: return two numbers
def measure_gil(measure, threads):
    longer = median(measure(threads) for _ in range(21)) / median(measure(1) for _ in range(21))
    print(threads / longer)
