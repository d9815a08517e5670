def union(intervals):
    total, until = 0.0, float("-inf")
    for start, end in sorted(intervals):
        total += max(0.0, end - max(start, until))
        until = max(until, end)
    return total


def cut(spans, begin, end, *kinds):
    return [
        (max(s, begin), min(e, end))
        for kind, s, e in spans
        if kind in kinds and s < end and e > begin
    ]


# %% right: each kind adds to those before
def step_breakdown(spans, steps):
    found = []
    for begin, end in steps:
        one = union(cut(spans, begin, end, "compute"))
        two = union(cut(spans, begin, end, "compute", "communication"))
        three = union(cut(spans, begin, end, "compute", "communication", "data"))
        found.append(
            {"compute": one, "exposed": two - one, "data": three - two, "idle": end - begin - three}
        )
    return found


# %% right: each moment asks in order
def step_breakdown(spans, steps):
    names = {"compute": "compute", "communication": "exposed", "data": "data"}
    found = []
    for begin, end in steps:
        parts = dict.fromkeys(("compute", "exposed", "data", "idle"), 0.0)
        inner = {t for _, s, e in spans for t in (s, e) if begin < t < end}
        borders = sorted({begin, end, *inner})
        for a, b in zip(borders, borders[1:]):
            running = {kind for kind, s, e in spans if s <= a and b <= e}
            first = next((names[kind] for kind in names if kind in running), "idle")
            parts[first] += b - a
        found.append(parts)
    return found


# %% wrong: another name | wrong | says: the key 'exposed' is missing
def step_breakdown(spans, steps):
    found = []
    for begin, end in steps:
        one = union(cut(spans, begin, end, "compute"))
        two = union(cut(spans, begin, end, "compute", "communication"))
        three = union(cut(spans, begin, end, "compute", "communication", "data"))
        found.append(
            {
                "compute": one,
                "communication": two - one,
                "data": three - two,
                "idle": end - begin - three,
            }
        )
    return found


# %% wrong: nothing is idle | wrong | says: the key 'idle' is missing
def step_breakdown(spans, steps):
    found = []
    for begin, end in steps:
        one = union(cut(spans, begin, end, "compute"))
        two = union(cut(spans, begin, end, "compute", "communication"))
        found.append({"compute": one, "exposed": two - one, "data": end - begin - two})
    return found


# %% wrong: until the next step begins | wrong | says: is not
def step_breakdown(spans, steps):
    found = []
    for at, (begin, end) in enumerate(steps):
        end = steps[at + 1][0] if at + 1 < len(steps) else end
        one = union(cut(spans, begin, end, "compute"))
        two = union(cut(spans, begin, end, "compute", "communication"))
        three = union(cut(spans, begin, end, "compute", "communication", "data"))
        found.append(
            {"compute": one, "exposed": two - one, "data": three - two, "idle": end - begin - three}
        )
    return found
