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


# %% wrong: a single lap of each | wrong | says: [Ll]eave each setting's first lap
def measure_gil(measure, threads):
    longer = measure(threads) / measure(1)
    return threads / longer, (longer - 1) / (threads - 1)


# %% wrong: the mean of twenty | wrong | says: take the median of about 20
def measure_gil(measure, threads):
    def time(n):
        measure(n)
        return sum(measure(n) for _ in range(20)) / 20

    longer = time(threads) / time(1)
    return threads / longer, (longer - 1) / (threads - 1)


# %% wrong: one lap after a warm-up of one thread | wrong | says: [Ll]eave each setting's first lap
def measure_gil(measure, threads):
    measure(1)
    longer = measure(threads) / median(measure(1) for _ in range(20))
    return threads / longer, (longer - 1) / (threads - 1)


# %% wrong: forgets that n threads do n pieces | wrong | says: there are n pieces of work
def measure_gil(measure, threads):
    longer = median(measure(threads) for _ in range(21)) / median(measure(1) for _ in range(21))
    return 1 / longer, (longer - 1) / (threads - 1)


# %% wrong: upside down | wrong | says: upside down
def measure_gil(measure, threads):
    longer = median(measure(threads) for _ in range(21)) / median(measure(1) for _ in range(21))
    return longer / threads, (longer - 1) / (threads - 1)


# %% wrong: the share is the ratio of times | wrong | says: Solve T\(n\)
def measure_gil(measure, threads):
    longer = median(measure(threads) for _ in range(21)) / median(measure(1) for _ in range(21))
    return threads / longer, longer / threads


# %% wrong: one number | wrong | says: two numbers must come back
def measure_gil(measure, threads):
    longer = median(measure(threads) for _ in range(21)) / median(measure(1) for _ in range(21))
    return threads / longer


# %% wrong: printed | wrong | says: two numbers must come back
def measure_gil(measure, threads):
    longer = median(measure(threads) for _ in range(21)) / median(measure(1) for _ in range(21))
    print(threads / longer)


# %% wrong: the mean, the first lap in it, by the right formula | wrong | says: take the median
def measure_gil(measure, threads):
    one = sum(measure(1) for _ in range(20)) / 20
    many = sum(measure(threads) for _ in range(20)) / 20
    return threads * one / many, (many / one - 1) / (threads - 1)
