# %% the formula from the number of microbatches
# The formula is for equal stages without pauses. Here measure: add up the spans given.
def bubble_fraction(busy):
    stages, microbatches = len(busy), len(busy[0]) // 2
    return (stages - 1) / (microbatches + stages - 1)


# %% idle over busy
# This is idle time by busy time. Divide by all time, idle and busy.
def bubble_fraction(busy):
    spans = [span for stage in busy for span in stage]
    length = max(end for _, end in spans) - min(start for start, _ in spans)
    worked = sum(end - start for start, end in spans)
    return (length * len(busy) - worked) / worked


# %% each stage from its own first start | crashed
# A stage may have no spans, also one without spans counts: take min() and max() over all spans of all
# stages, from the first start to the last end.
def bubble_fraction(busy):
    idle = total = 0
    for stage in busy:
        length = max(end for _, end in stage) - min(start for start, _ in stage)
        idle += length - sum(end - start for start, end in stage)
        total += length
    return idle / total


# %% the time is taken to begin at 0
# The clock need not begin at 0: the time is that from the first start to the last end.
def bubble_fraction(busy):
    spans = [span for stage in busy for span in stage]
    length = max(end for _, end in spans)
    return 1 - sum(end - start for start, end in spans) / (length * len(busy))


# %% a stage that never works is left out
# All stages count, also one without spans: it idles all the time.
def bubble_fraction(busy):
    busy = [stage for stage in busy if stage]
    spans = [span for stage in busy for span in stage]
    length = max(end for _, end in spans) - min(start for start, _ in spans)
    return 1 - sum(end - start for start, end in spans) / (length * len(busy))


# %% spans are taken to be in order
# The first start and the last end are those of all spans, in whatever order they come.
def bubble_fraction(busy):
    begin = min(stage[0][0] for stage in busy if stage)
    end = max(stage[-1][1] for stage in busy if stage)
    worked = sum(e - b for stage in busy for b, e in stage)
    return 1 - worked / ((end - begin) * len(busy))


# %% the busy share
# This is the share in which the stages work: subtract it from 1.
def bubble_fraction(busy):
    spans = [span for stage in busy for span in stage]
    length = max(end for _, end in spans) - min(start for start, _ in spans)
    return sum(end - start for start, end in spans) / (length * len(busy))


# %% in per cent
# A fraction is wanted, between 0 and 1, not per cent.
def bubble_fraction(busy):
    spans = [span for stage in busy for span in stage]
    length = max(end for _, end in spans) - min(start for start, _ in spans)
    return 100 - 100 * sum(end - start for start, end in spans) / (length * len(busy))


# %% each stage that works from its own first start
# All stages count for the same time, from the first start to the last end over all spans of all stages:
# not each for its own.
def bubble_fraction(busy):
    worked = sum(end - start for stage in busy for start, end in stage)
    total = sum(max(e for _, e in stage) - min(b for b, _ in stage) for stage in busy if stage)
    return 1 - worked / total


# %% the sum of what the stages idle
# This is the sum over the stages: divide by the time of all of them.
def bubble_fraction(busy):
    spans = [span for stage in busy for span in stage]
    length = max(end for _, end in spans) - min(start for start, _ in spans)
    return sum(1 - sum(end - start for start, end in stage) / length for stage in busy)
