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


# %% wrong: counted in sixteenths of a millisecond | wrong | says: is not
def exposed_communication(spans):
    moments = {"compute": set(), "communication": set(), "data": set(), "label": set()}
    for kind, start, end in spans:
        moments[kind] |= set(range(round(start * 16), round(end * 16)))
    return len(moments["communication"] - moments["compute"]) / 16
