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


# %% wrong: sums of lengths | wrong | says: unite them before you add up
def step_breakdown(spans, steps):
    found = []
    for begin, end in steps:
        parts = {
            name: sum(e - s for s, e in cut(spans, begin, end, kind))
            for name, kind in (
                ("compute", "compute"),
                ("exposed", "communication"),
                ("data", "data"),
            )
        }
        found.append(parts | {"idle": end - begin - sum(parts.values())})
    return found


# %% wrong: all communication | wrong | says: communication that no computation hides
def step_breakdown(spans, steps):
    found = []
    for begin, end in steps:
        parts = {
            name: union(cut(spans, begin, end, kind))
            for name, kind in (
                ("compute", "compute"),
                ("exposed", "communication"),
                ("data", "data"),
            )
        }
        found.append(parts | {"idle": max(0.0, end - begin - sum(parts.values()))})
    return found


# %% wrong: all data, hidden or not | wrong | says: `data` is what it adds
def step_breakdown(spans, steps):
    found = []
    for begin, end in steps:
        one = union(cut(spans, begin, end, "compute"))
        two = union(cut(spans, begin, end, "compute", "communication"))
        data = union(cut(spans, begin, end, "data"))
        found.append(
            {"compute": one, "exposed": two - one, "data": data, "idle": end - begin - two - data}
        )
    return found


# %% wrong: a span belongs to the step in which it begins | wrong | says: each step has the part that lies in it
def step_breakdown(spans, steps):
    found = []
    for begin, end in steps:
        inside = [span for span in spans if begin <= span[1] < end]
        one = union([(s, e) for kind, s, e in inside if kind == "compute"])
        two = union([(s, e) for kind, s, e in inside if kind in ("compute", "communication")])
        three = union([(s, e) for kind, s, e in inside if kind != "label"])
        found.append(
            {"compute": one, "exposed": two - one, "data": three - two, "idle": end - begin - three}
        )
    return found


# %% wrong: communication is asked for first | wrong | says: A moment in which the rank computes is `compute`
def step_breakdown(spans, steps):
    found = []
    for begin, end in steps:
        one = union(cut(spans, begin, end, "communication"))
        two = union(cut(spans, begin, end, "compute", "communication"))
        three = union(cut(spans, begin, end, "compute", "communication", "data"))
        found.append(
            {"compute": two - one, "exposed": one, "data": three - two, "idle": end - begin - three}
        )
    return found


# %% wrong: one dict for all steps | wrong | says: One dict for each step
def step_breakdown(spans, steps):
    parts = dict.fromkeys(("compute", "exposed", "data", "idle"), 0.0)
    for begin, end in steps:
        one = union(cut(spans, begin, end, "compute"))
        two = union(cut(spans, begin, end, "compute", "communication"))
        three = union(cut(spans, begin, end, "compute", "communication", "data"))
        for name, ms in zip(parts, (one, two - one, three - two, end - begin - three)):
            parts[name] += ms
    return parts


# %% wrong: steps in the order of time | wrong | says: in the order of `steps`
def step_breakdown(spans, steps):
    found = []
    for begin, end in sorted(steps):
        one = union(cut(spans, begin, end, "compute"))
        two = union(cut(spans, begin, end, "compute", "communication"))
        three = union(cut(spans, begin, end, "compute", "communication", "data"))
        found.append(
            {"compute": one, "exposed": two - one, "data": three - two, "idle": end - begin - three}
        )
    return found


# %% wrong: labels count as work | wrong | says: A label is no work
def step_breakdown(spans, steps):
    found = []
    for begin, end in steps:
        one = union(cut(spans, begin, end, "compute", "label"))
        two = union(cut(spans, begin, end, "compute", "label", "communication"))
        three = union(cut(spans, begin, end, "compute", "label", "communication", "data"))
        found.append(
            {"compute": one, "exposed": two - one, "data": three - two, "idle": end - begin - three}
        )
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


# %% wrong: what crosses a border is dropped | wrong | says: is left out here
def step_breakdown(spans, steps):
    found = []
    for begin, end in steps:
        inside = [(k, s, e) for k, s, e in spans if begin <= s and e <= end]
        one = union([(s, e) for kind, s, e in inside if kind == "compute"])
        two = union([(s, e) for kind, s, e in inside if kind in ("compute", "communication")])
        three = union([(s, e) for kind, s, e in inside if kind != "label"])
        found.append(
            {"compute": one, "exposed": two - one, "data": three - two, "idle": end - begin - three}
        )
    return found


# %% wrong: what began before is dropped | wrong | says: is left out here
def step_breakdown(spans, steps):
    found = []
    for begin, end in steps:
        inside = [(k, max(s, begin), min(e, end)) for k, s, e in spans if begin <= s < end]
        one = union([(s, e) for kind, s, e in inside if kind == "compute"])
        two = union([(s, e) for kind, s, e in inside if kind in ("compute", "communication")])
        three = union([(s, e) for kind, s, e in inside if kind != "label"])
        found.append(
            {"compute": one, "exposed": two - one, "data": three - two, "idle": end - begin - three}
        )
    return found


# %% wrong: what ends after is dropped | wrong | says: is left out here
def step_breakdown(spans, steps):
    found = []
    for begin, end in steps:
        inside = [(k, max(s, begin), min(e, end)) for k, s, e in spans if begin < e <= end]
        one = union([(s, e) for kind, s, e in inside if kind == "compute"])
        two = union([(s, e) for kind, s, e in inside if kind in ("compute", "communication")])
        three = union([(s, e) for kind, s, e in inside if kind != "label"])
        found.append(
            {"compute": one, "exposed": two - one, "data": three - two, "idle": end - begin - three}
        )
    return found


# %% wrong: a span around the whole step is forgotten | wrong | says: may begin before a step and end after it
def step_breakdown(spans, steps):
    found = []
    for begin, end in steps:
        inside = [
            (k, max(s, begin), min(e, end))
            for k, s, e in spans
            if begin <= s < end or begin < e <= end
        ]
        one = union([(s, e) for kind, s, e in inside if kind == "compute"])
        two = union([(s, e) for kind, s, e in inside if kind in ("compute", "communication")])
        three = union([(s, e) for kind, s, e in inside if kind != "label"])
        found.append(
            {"compute": one, "exposed": two - one, "data": three - two, "idle": end - begin - three}
        )
    return found


# %% wrong: a span belongs to the step in which it ends | wrong | says: each step has the part that lies in it
def step_breakdown(spans, steps):
    found = []
    for begin, end in steps:
        inside = [(k, s, e) for k, s, e in spans if begin < e <= end]
        one = union([(s, e) for kind, s, e in inside if kind == "compute"])
        two = union([(s, e) for kind, s, e in inside if kind in ("compute", "communication")])
        three = union([(s, e) for kind, s, e in inside if kind != "label"])
        found.append(
            {"compute": one, "exposed": two - one, "data": three - two, "idle": end - begin - three}
        )
    return found


# %% wrong: what is counted begins at 0 | wrong | says: also far below 0
def step_breakdown(spans, steps):
    def from_zero(intervals):
        total = until = 0.0
        for start, end in sorted(intervals):
            total += max(0.0, end - max(start, until))
            until = max(until, end)
        return total

    found = []
    for begin, end in steps:
        inside = [(k, max(s, begin), min(e, end)) for k, s, e in spans if s < end and e > begin]
        one = from_zero([(s, e) for kind, s, e in inside if kind == "compute"])
        two = from_zero([(s, e) for kind, s, e in inside if kind in ("compute", "communication")])
        three = from_zero([(s, e) for kind, s, e in inside if kind != "label"])
        found.append(
            {"compute": one, "exposed": two - one, "data": three - two, "idle": end - begin - three}
        )
    return found
