def union(intervals):
    total, until = 0.0, float("-inf")
    for start, end in sorted(intervals):
        total += max(0.0, end - max(start, until))
        until = max(until, end)
    return total


# %% all communication, hidden or not
# This is all communication, including what runs while the rank computes.
def exposed_communication(spans):
    return union([(s, e) for kind, s, e in spans if kind == "communication"])


# %% lengths added up
# This is the sum of all communication spans. Leave out what runs while the rank computes, and count time
# with two spans in flight once.
def exposed_communication(spans):
    return sum(e - s for kind, s, e in spans if kind == "communication")


# %% sums subtracted
# This is a difference of two totals. Computation hides only communication that runs at the same time.
def exposed_communication(spans):
    compute = union([(s, e) for kind, s, e in spans if kind == "compute"])
    return max(0.0, union([(s, e) for kind, s, e in spans if kind == "communication"]) - compute)


# %% pairs subtracted, what overlaps twice
# Time that two spans of a kind share is counted twice: merge the spans of a kind before you add up lengths.
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
# Spans of other kinds are counted as if they hid communication: only "compute" does.
def exposed_communication(spans):
    rest = [(s, e) for kind, s, e in spans if kind != "communication"]
    return union([(s, e) for _, s, e in spans]) - union(rest)


# %% the end of the span before
# A span may be inside one that began earlier: keep the latest end so far, not the end of the previous span.
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
# This is the communication that is hidden by computation: return the rest.
def exposed_communication(spans):
    compute = [(s, e) for kind, s, e in spans if kind == "compute"]
    communication = [(s, e) for kind, s, e in spans if kind == "communication"]
    return union(compute) + union(communication) - union(compute + communication)


# %% there is always communication | crashed
# A list is empty here: there may be no communication, or no spans at all. Give min() and max() a `default`.
def exposed_communication(spans):
    compute = [(s, e) for kind, s, e in spans if kind == "compute"]
    communication = [(s, e) for kind, s, e in spans if kind == "communication"]
    last = max(e for _, e in communication)
    return max(0.0, union(compute + communication) - union(compute)) if last else 0.0


# %% what is counted begins at -1000
# The clock may begin anywhere, even far below 0: start the latest end so far at `float("-inf")`.
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
# The clock may begin anywhere, even far below 0: start the latest end so far at `float("-inf")`.
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
# The spans are in no order: sort them before you merge them one after another.
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
# Return milliseconds, as `spans` are.
def exposed_communication(spans):
    compute = [(s, e) for kind, s, e in spans if kind == "compute"]
    either = [(s, e) for kind, s, e in spans if kind in ("compute", "communication")]
    return (union(either) - union(compute)) * 1000


# %% labels hide as well
# Spans of other kinds are counted as if they hid communication: only "compute" does.
def exposed_communication(spans):
    hides = [(s, e) for kind, s, e in spans if kind in ("compute", "label")]
    communication = [(s, e) for kind, s, e in spans if kind == "communication"]
    return union(hides + communication) - union(hides)


# %% united in the order of the spans
# The spans are in no order: sort them before you merge them one after another.
def exposed_communication(spans):
    def length(intervals):
        total, until = 0.0, float("-inf")
        for start, end in intervals:
            total += max(0.0, end - max(start, until))
            until = max(until, end)
        return total

    either = [(s, e) for kind, s, e in spans if kind in ("compute", "communication")]
    return length(either) - length([(s, e) for kind, s, e in spans if kind == "compute"])


# %% in whole milliseconds
# Times are rounded to whole milliseconds: spans may begin and end in between.
def exposed_communication(spans):
    def cells(kind):
        return {t for k, s, e in spans if k == kind for t in range(int(s), int(e))}

    return float(len(cells("communication") - cells("compute")))
