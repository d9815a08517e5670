def union(intervals):
    total, until = 0.0, float("-inf")
    for start, end in sorted(intervals):
        total += max(0.0, end - max(start, until))
        until = max(until, end)
    return total


# %% all communication, hidden or not
# This is all communication, also what runs while the rank computes.
def exposed_communication(spans):
    return union([(s, e) for kind, s, e in spans if kind == "communication"])


# %% lengths added up
# This adds up all communication. What runs while the rank computes is not asked for, and what is in
# flight at once counts once.
def exposed_communication(spans):
    return sum(e - s for kind, s, e in spans if kind == "communication")


# %% sums subtracted
# Computation hides only what runs at the same time: the two sums say nothing of when that is.
def exposed_communication(spans):
    compute = union([(s, e) for kind, s, e in spans if kind == "compute"])
    return max(0.0, union([(s, e) for kind, s, e in spans if kind == "communication"]) - compute)


# %% pairs subtracted, what overlaps twice
# Two collectives in flight at once, and two operators, one within the other, count once: unite the spans
# of a kind before you add up lengths.
def exposed_communication(spans):
    total = 0.0
    for kind, s, e in spans:
        if kind == "communication":
            total += e - s
            for other, a, b in spans:
                if other == "compute":
                    total -= max(0.0, min(e, b) - max(s, a))
    return total


# %% data and labels hide as well
# Only computation hides. A loader that runs, or a label around it all, does no work for the model.
def exposed_communication(spans):
    rest = [(s, e) for kind, s, e in spans if kind != "communication"]
    return union([(s, e) for _, s, e in spans]) - union(rest)


# %% the end of the span before
# An operator calls others: a span may lie within one that began earlier. Keep the latest end so far, not
# that of the span before.
def exposed_communication(spans):
    def length(intervals):
        total, until = 0.0, float("-inf")
        for start, end in sorted(intervals):
            total += max(0.0, end - max(start, until))
            until = end
        return total

    compute = [(s, e) for kind, s, e in spans if kind == "compute"]
    either = [(s, e) for kind, s, e in spans if kind in ("compute", "communication")]
    return length(either) - length(compute)


# %% what is hidden
# This is what is hidden; asked for is the rest.
def exposed_communication(spans):
    compute = [(s, e) for kind, s, e in spans if kind == "compute"]
    communication = [(s, e) for kind, s, e in spans if kind == "communication"]
    return union(compute) + union(communication) - union(compute + communication)


# %% there is always communication | crashed
# There may be no communication, or no spans at all: give min() and max() a `default`.
def exposed_communication(spans):
    compute = [(s, e) for kind, s, e in spans if kind == "compute"]
    communication = [(s, e) for kind, s, e in spans if kind == "communication"]
    last = max(e for _, e in communication)
    return max(0.0, union(compute + communication) - union(compute)) if last else 0.0


# %% what is counted begins at -1000
# The clock may begin anywhere, also far below 0. What is counted up to, before the first span, is
# `float("-inf")`.
def exposed_communication(spans):
    def length(intervals):
        total, until = 0.0, -1000.0
        for start, end in sorted(intervals):
            total += max(0.0, end - max(start, until))
            until = max(until, end)
        return total

    compute = [(s, e) for kind, s, e in spans if kind == "compute"]
    either = [(s, e) for kind, s, e in spans if kind in ("compute", "communication")]
    return length(either) - length(compute)


# %% what is counted begins at 0
# The clock may begin anywhere, also far below 0. What is counted up to, before the first span, is
# `float("-inf")`.
def exposed_communication(spans):
    def length(intervals):
        total = until = 0.0
        for start, end in sorted(intervals):
            total += max(0.0, end - max(start, until))
            until = max(until, end)
        return total

    compute = [(s, e) for kind, s, e in spans if kind == "compute"]
    either = [(s, e) for kind, s, e in spans if kind in ("compute", "communication")]
    return length(either) - length(compute)


# %% united without an order
# The spans come in no order: sort them before you go through them from the first to the last.
def exposed_communication(spans):
    def length(intervals):
        total, until = 0.0, float("-inf")
        for start, end in intervals:
            total += max(0.0, end - max(start, until))
            until = max(until, end)
        return total

    compute = [(s, e) for kind, s, e in spans if kind == "compute"]
    communication = [(s, e) for kind, s, e in spans if kind == "communication"]
    return length(compute + communication) - length(compute)


# %% in microseconds
# The spans are in milliseconds already, and so is what is asked for.
def exposed_communication(spans):
    compute = [(s, e) for kind, s, e in spans if kind == "compute"]
    either = [(s, e) for kind, s, e in spans if kind in ("compute", "communication")]
    return (union(either) - union(compute)) * 1000


# %% labels hide as well
# Only computation hides. A loader that runs, or a label around it all, does no work for the model.
def exposed_communication(spans):
    hides = [(s, e) for kind, s, e in spans if kind in ("compute", "label")]
    communication = [(s, e) for kind, s, e in spans if kind == "communication"]
    return union(hides + communication) - union(hides)
