# %% the formula from the number of microbatches
# This does not depend on the spans as it should. The formula is a prediction for equal stages without
# pauses; here add up the spans that were measured.
def bubble_fraction(busy):
    stages, microbatches = len(busy), len(busy[0]) // 2
    return (stages - 1) / (microbatches + stages - 1)


# %% idle over busy
# This is idle time divided by busy time. Divide by the whole time, idle and busy.
def bubble_fraction(busy):
    spans = [span for stage in busy for span in stage]
    length = max(end for _, end in spans) - min(start for start, _ in spans)
    worked = sum(end - start for start, end in spans)
    return (length * len(busy) - worked) / worked


# %% each stage from its own first start | crashed
# min() or max() of an empty list: a stage may have no spans. Take the first start and the last end over all
# spans of all stages.
def bubble_fraction(busy):
    idle = total = 0
    for stage in busy:
        length = max(end for _, end in stage) - min(start for start, _ in stage)
        idle += length - sum(end - start for start, end in stage)
        total += length
    return idle / total


# %% the time is taken to begin at 0
# This assumes that the clock starts at 0. The whole time is from the first start to the last end.
def bubble_fraction(busy):
    spans = [span for stage in busy for span in stage]
    length = max(end for _, end in spans)
    return 1 - sum(end - start for start, end in spans) / (length * len(busy))


# %% a stage that never works is left out
# A stage without spans is left out. Such a stage counts, too: it is idle all the time.
def bubble_fraction(busy):
    busy = [stage for stage in busy if stage]
    spans = [span for stage in busy for span in stage]
    length = max(end for _, end in spans) - min(start for start, _ in spans)
    return 1 - sum(end - start for start, end in spans) / (length * len(busy))


# %% spans are taken to be in order
# This assumes that the spans are in order. Take the smallest start and the largest end of all spans.
def bubble_fraction(busy):
    begin = min(stage[0][0] for stage in busy if stage)
    end = max(stage[-1][1] for stage in busy if stage)
    worked = sum(e - b for stage in busy for b, e in stage)
    return 1 - worked / ((end - begin) * len(busy))


# %% the busy share
# This is the busy share. Subtract it from 1.
def bubble_fraction(busy):
    spans = [span for stage in busy for span in stage]
    length = max(end for _, end in spans) - min(start for start, _ in spans)
    return sum(end - start for start, end in spans) / (length * len(busy))


# %% in per cent
# This is in percent. Return a fraction from 0 to 1.
def bubble_fraction(busy):
    spans = [span for stage in busy for span in stage]
    length = max(end for _, end in spans) - min(start for start, _ in spans)
    return 100 - 100 * sum(end - start for start, end in spans) / (length * len(busy))


# %% each stage that works from its own first start
# Each stage is measured over its own time. All stages count over the same time, from the first start to the
# last end over all stages.
def bubble_fraction(busy):
    worked = sum(end - start for stage in busy for start, end in stage)
    total = sum(max(e for _, e in stage) - min(b for b, _ in stage) for stage in busy if stage)
    return 1 - worked / total


# %% the sum of what the stages idle
# This adds up the idle shares of the stages. Divide the idle time by the time of all stages together.
def bubble_fraction(busy):
    spans = [span for stage in busy for span in stage]
    length = max(end for _, end in spans) - min(start for start, _ in spans)
    return sum(1 - sum(end - start for start, end in stage) / length for stage in busy)
