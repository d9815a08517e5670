from statistics import median


# %% a single lap of each
# Check the formula first. If it is right, the times are not: leave out each setting's first timing, and
# take the median of about 20 others. First timings are slow, and now and then one is far too long.
def measure_gil(measure, threads):
    longer = measure(threads) / measure(1)
    return threads / longer, (longer - 1) / (threads - 1)


# %% the mean of twenty
# Check the formula first. If it is right, the times are not: leave out each setting's first timing, and
# take the median of about 20 others. First timings are slow, and now and then one is far too long.
def measure_gil(measure, threads):
    def time(n):
        measure(n)
        return sum(measure(n) for _ in range(20)) / 20

    longer = time(threads) / time(1)
    return threads / longer, (longer - 1) / (threads - 1)


# %% one lap after a warm-up of one thread
# Check the formula first. If it is right, the times are not: leave out each setting's first timing, and
# take the median of about 20 others. First timings are slow, and now and then one is far too long.
def measure_gil(measure, threads):
    measure(1)
    longer = measure(threads) / median(measure(1) for _ in range(20))
    return threads / longer, (longer - 1) / (threads - 1)


# %% forgets that n threads do n pieces
# This is T(1) / T(n), but n threads do n pieces of work: multiply by n.
def measure_gil(measure, threads):
    longer = median(measure(threads) for _ in range(21)) / median(measure(1) for _ in range(21))
    return 1 / longer, (longer - 1) / (threads - 1)


# %% upside down
# The speed-up is upside down: twice as fast is 2.
def measure_gil(measure, threads):
    longer = median(measure(threads) for _ in range(21)) / median(measure(1) for _ in range(21))
    return longer / threads, (longer - 1) / (threads - 1)


# %% the share is the ratio of times
# The share does not fit the times: solve T(n) = T(1) (1 - h + h n) for h. Where T(n) is n times T(1), h is
# 1.
def measure_gil(measure, threads):
    longer = median(measure(threads) for _ in range(21)) / median(measure(1) for _ in range(21))
    return threads / longer, longer / threads


# %% the mean, the first lap in it, by the right formula
# Check the formula first. If it is right, the times are not: leave out each setting's first timing, and
# take the median of about 20 others. First timings are slow, and now and then one is far too long.
def measure_gil(measure, threads):
    one = sum(measure(1) for _ in range(20)) / 20
    many = sum(measure(threads) for _ in range(20)) / 20
    return threads * one / many, (many / one - 1) / (threads - 1)
