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


# %% right: in floats from a sorted list
def bubble_fraction(busy):
    begins = sorted(start for stage in busy for start, _ in stage)
    ends = sorted(end for stage in busy for _, end in stage)
    return 1 - (sum(ends) - sum(begins)) / (ends[-1] - begins[0]) / len(busy)
