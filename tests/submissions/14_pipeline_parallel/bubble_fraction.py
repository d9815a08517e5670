# %% right: flattened
def bubble_fraction(busy):
    spans = [span for stage in busy for span in stage]
    length = max(end for _, end in spans) - min(start for start, _ in spans)
    return 1 - sum(end - start for start, end in spans) / (length * len(busy))


# %% right: the mean over stages of what each idles, as a tensor
def bubble_fraction(busy):
    begin = min(span[0] for stage in busy for span in stage)
    end = max(span[1] for stage in busy for span in stage)
    idle = [(end - begin) - sum(e - b for b, e in stage) for stage in busy]
    return torch.tensor(idle, dtype=torch.float64).mean() / (end - begin)


# %% right: a loop
def bubble_fraction(busy):
    first, last, worked = float("inf"), float("-inf"), 0.0
    for stage in busy:
        for start, end in stage:
            first, last = min(first, start), max(last, end)
            worked += end - start
    total = (last - first) * len(busy)
    return (total - worked) / total


# %% wrong: the formula from the number of microbatches | wrong | says: for equal stages
def bubble_fraction(busy):
    stages, microbatches = len(busy), len(busy[0]) // 2
    return (stages - 1) / (microbatches + stages - 1)


# %% wrong: idle over busy | wrong | says: idle time by busy time
def bubble_fraction(busy):
    spans = [span for stage in busy for span in stage]
    length = max(end for _, end in spans) - min(start for start, _ in spans)
    worked = sum(end - start for start, end in spans)
    return (length * len(busy) - worked) / worked


# %% wrong: each stage from its own first start | crashed | says: from the first start to the last end
def bubble_fraction(busy):
    idle = total = 0
    for stage in busy:
        length = max(end for _, end in stage) - min(start for start, _ in stage)
        idle += length - sum(end - start for start, end in stage)
        total += length
    return idle / total


# %% wrong: the time is taken to begin at 0 | wrong | says: The clock need not begin at 0
def bubble_fraction(busy):
    spans = [span for stage in busy for span in stage]
    length = max(end for _, end in spans)
    return 1 - sum(end - start for start, end in spans) / (length * len(busy))


# %% wrong: a stage that never works is left out | wrong | says: also one without spans
def bubble_fraction(busy):
    busy = [stage for stage in busy if stage]
    spans = [span for stage in busy for span in stage]
    length = max(end for _, end in spans) - min(start for start, _ in spans)
    return 1 - sum(end - start for start, end in spans) / (length * len(busy))


# %% wrong: spans are taken to be in order | wrong | says: in whatever order
def bubble_fraction(busy):
    begin = min(stage[0][0] for stage in busy if stage)
    end = max(stage[-1][1] for stage in busy if stage)
    worked = sum(e - b for stage in busy for b, e in stage)
    return 1 - worked / ((end - begin) * len(busy))


# %% wrong: the busy share | wrong | says: subtract it from 1
def bubble_fraction(busy):
    spans = [span for stage in busy for span in stage]
    length = max(end for _, end in spans) - min(start for start, _ in spans)
    return sum(end - start for start, end in spans) / (length * len(busy))


# %% wrong: in per cent | wrong | says: between 0 and 1
def bubble_fraction(busy):
    spans = [span for stage in busy for span in stage]
    length = max(end for _, end in spans) - min(start for start, _ in spans)
    return 100 - 100 * sum(end - start for start, end in spans) / (length * len(busy))


# %% right: in floats from a sorted list
def bubble_fraction(busy):
    begins = sorted(start for stage in busy for start, _ in stage)
    ends = sorted(end for stage in busy for _, end in stage)
    return 1 - (sum(ends) - sum(begins)) / (ends[-1] - begins[0]) / len(busy)


# %% wrong: each stage that works from its own first start | wrong | says: not each for its own
def bubble_fraction(busy):
    worked = sum(end - start for stage in busy for start, end in stage)
    total = sum(max(e for _, e in stage) - min(b for b, _ in stage) for stage in busy if stage)
    return 1 - worked / total


# %% wrong: the sum of what the stages idle | wrong | says: This is the sum over the stages
def bubble_fraction(busy):
    spans = [span for stage in busy for span in stage]
    length = max(end for _, end in spans) - min(start for start, _ in spans)
    return sum(1 - sum(end - start for start, end in stage) / length for stage in busy)
