def union(intervals):
    total, until = 0.0, float("-inf")
    for start, end in sorted(intervals):
        total += max(0.0, end - max(start, until))
        until = max(until, end)
    return total


# %% right: either, less computation
def exposed_communication(spans):
    compute = [(s, e) for kind, s, e in spans if kind == "compute"]
    either = [(s, e) for kind, s, e in spans if kind in ("compute", "communication")]
    return union(either) - union(compute)


# %% right: moment by moment between all borders
def exposed_communication(spans):
    borders = sorted({t for _, s, e in spans for t in (s, e)})
    total = 0.0
    for a, b in zip(borders, borders[1:]):
        running = {kind for kind, s, e in spans if s <= a and b <= e}
        if "communication" in running and "compute" not in running:
            total += b - a
    return total


# %% right: counters that rise and fall
def exposed_communication(spans):
    moments = []
    for kind, start, end in spans:
        if kind in ("compute", "communication"):
            moments += [(start, kind, 1), (end, kind, -1)]
    running, last, total = {"compute": 0, "communication": 0}, 0.0, 0.0
    for at, kind, change in sorted(moments):
        if running["communication"] and not running["compute"]:
            total += at - last
        running[kind] += change
        last = at
    return total


# %% wrong: all communication, hidden or not | wrong | says: also what runs while the rank computes
def exposed_communication(spans):
    return union([(s, e) for kind, s, e in spans if kind == "communication"])


# %% wrong: lengths added up | wrong | says: This adds up all communication
def exposed_communication(spans):
    return sum(e - s for kind, s, e in spans if kind == "communication")


# %% wrong: sums subtracted | wrong | says: the two sums say nothing of when
def exposed_communication(spans):
    compute = union([(s, e) for kind, s, e in spans if kind == "compute"])
    return max(0.0, union([(s, e) for kind, s, e in spans if kind == "communication"]) - compute)


# %% wrong: pairs subtracted, what overlaps twice | wrong | says: unite the spans of a kind before
def exposed_communication(spans):
    total = 0.0
    for kind, s, e in spans:
        if kind == "communication":
            total += e - s
            for other, a, b in spans:
                if other == "compute":
                    total -= max(0.0, min(e, b) - max(s, a))
    return total


# %% wrong: data and labels hide as well | wrong | says: Only computation hides
def exposed_communication(spans):
    rest = [(s, e) for kind, s, e in spans if kind != "communication"]
    return union([(s, e) for _, s, e in spans]) - union(rest)


# %% wrong: the end of the span before | wrong | says: Keep the latest end so far
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


# %% wrong: what is hidden | wrong | says: This is what is hidden
def exposed_communication(spans):
    compute = [(s, e) for kind, s, e in spans if kind == "compute"]
    communication = [(s, e) for kind, s, e in spans if kind == "communication"]
    return union(compute) + union(communication) - union(compute + communication)


# %% wrong: not sorted | wrong | says: is not
def exposed_communication(spans):
    total, until = 0.0, float("-inf")
    for kind, start, end in spans:
        if kind == "communication":
            total += max(0.0, end - max(start, until))
            until = max(until, end)
        elif kind == "compute":
            until = max(until, end)
    return total


# %% wrong: there is always communication | crashed | says: There may be no communication
def exposed_communication(spans):
    compute = [(s, e) for kind, s, e in spans if kind == "compute"]
    communication = [(s, e) for kind, s, e in spans if kind == "communication"]
    last = max(e for _, e in communication)
    return max(0.0, union(compute + communication) - union(compute)) if last else 0.0


# %% wrong: counted in sixteenths of a millisecond | wrong | says: is not
def exposed_communication(spans):
    moments = {"compute": set(), "communication": set(), "data": set(), "label": set()}
    for kind, start, end in spans:
        moments[kind] |= set(range(round(start * 16), round(end * 16)))
    return len(moments["communication"] - moments["compute"]) / 16


# %% wrong: what is counted begins at -1000 | wrong | says: far below 0
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


# %% wrong: what is counted begins at 0 | wrong | says: far below 0
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


# %% wrong: united without an order | wrong | says: sort them before you go through them
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


# %% wrong: in microseconds | wrong | says: in milliseconds already
def exposed_communication(spans):
    compute = [(s, e) for kind, s, e in spans if kind == "compute"]
    either = [(s, e) for kind, s, e in spans if kind in ("compute", "communication")]
    return (union(either) - union(compute)) * 1000


# %% wrong: labels hide as well | wrong | says: Only computation hides
def exposed_communication(spans):
    hides = [(s, e) for kind, s, e in spans if kind in ("compute", "label")]
    communication = [(s, e) for kind, s, e in spans if kind == "communication"]
    return union(hides + communication) - union(hides)
