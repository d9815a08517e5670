# %% wrong: each stage from its own first start | crashed | says: from the first start to the last end


# %% wrong: the time is taken to begin at 0 | wrong | says: The clock need not begin at 0


# %% wrong: a stage that never works is left out | wrong | says: also one without spans


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
