from statistics import median


# %% a single lap of each
# If the formula is right, it is the times: leave each setting's first lap out, and take the median of
# about 20 others. First laps are slow, and now and then one is far too long.
def measure_gil(measure, threads):
    longer = measure(threads) / measure(1)
    return threads / longer, (longer - 1) / (threads - 1)


# %% the mean of twenty
# If the formula is right, it is the times: leave each setting's first lap out, and take the median of
# about 20 others. First laps are slow, and now and then one is far too long.
def measure_gil(measure, threads):
    def time(n):
        measure(n)
        return sum(measure(n) for _ in range(20)) / 20

    longer = time(threads) / time(1)
    return threads / longer, (longer - 1) / (threads - 1)


# %% one lap after a warm-up of one thread
# If the formula is right, it is the times: leave each setting's first lap out, and take the median of
# about 20 others. First laps are slow, and now and then one is far too long.
def measure_gil(measure, threads):
    measure(1)
    longer = measure(threads) / median(measure(1) for _ in range(20))
    return threads / longer, (longer - 1) / (threads - 1)


# %% forgets that n threads do n pieces
# In T(n) there are n pieces of work, in T(1) one.
def measure_gil(measure, threads):
    longer = median(measure(threads) for _ in range(21)) / median(measure(1) for _ in range(21))
    return 1 / longer, (longer - 1) / (threads - 1)


# %% upside down
# It is upside down: faster means more than 1.
def measure_gil(measure, threads):
    longer = median(measure(threads) for _ in range(21)) / median(measure(1) for _ in range(21))
    return longer / threads, (longer - 1) / (threads - 1)


# %% the share is the ratio of times
# Solve T(n) = T(1) (1 - h + h n) for h; where T(n) is n times T(1), h is 1.
def measure_gil(measure, threads):
    longer = median(measure(threads) for _ in range(21)) / median(measure(1) for _ in range(21))
    return threads / longer, longer / threads


# %% the mean, the first lap in it, by the right formula
# If the formula is right, it is the times: leave each setting's first lap out, and take the median of
# about 20 others. First laps are slow, and now and then one is far too long.
def measure_gil(measure, threads):
    one = sum(measure(1) for _ in range(20)) / 20
    many = sum(measure(threads) for _ in range(20)) / 20
    return threads * one / many, (many / one - 1) / (threads - 1)
