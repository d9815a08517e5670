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


# %% sums of lengths
# Spans of one kind nest and overlap: unite them before you add up.
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


# %% all communication
# Each moment belongs to one part: `exposed` is communication that no computation hides.
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


# %% all data, hidden or not
# Data that is read while the rank computes or communicates costs nothing: `data` is what it adds.
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


# %% a span belongs to the step in which it begins
# A span may begin in one step and end in another: each step has the part that lies in it. Cut to the step
# before you count.
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


# %% communication is asked for first
# A moment in which the rank computes is `compute`, whatever else runs: ask for that first.
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


# %% one dict for all steps
# One dict for each step, in a list, as `steps` has them.
def step_breakdown(spans, steps):
    parts = dict.fromkeys(("compute", "exposed", "data", "idle"), 0.0)
    for begin, end in steps:
        one = union(cut(spans, begin, end, "compute"))
        two = union(cut(spans, begin, end, "compute", "communication"))
        three = union(cut(spans, begin, end, "compute", "communication", "data"))
        for name, ms in zip(parts, (one, two - one, three - two, end - begin - three)):
            parts[name] += ms
    return parts


# %% steps in the order of time
# One dict for each step, in the order of `steps`.
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


# %% labels count as work
# A label is no work: leave spans of other kinds out.
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


# %% what crosses a border is dropped
# A span that crosses the border of a step is left out here. Each step has the part that lies in it: cut
# it, and leave out only what lies wholly outside.
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


# %% what began before is dropped
# A span that crosses the border of a step is left out here. Each step has the part that lies in it: cut
# it, and leave out only what lies wholly outside.
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


# %% what ends after is dropped
# A span that crosses the border of a step is left out here. Each step has the part that lies in it: cut
# it, and leave out only what lies wholly outside.
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


# %% a span around the whole step is forgotten
# A span may begin before a step and end after it: then the whole step lies in it. What has a part in the
# step is what begins before its end and ends after its beginning.
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


# %% a span belongs to the step in which it ends
# A span may begin in one step and end in another: each step has the part that lies in it. Cut to the step
# before you count.
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


# %% what is counted begins at 0
# The clock may begin anywhere, also far below 0: count from `float('-inf')` on.
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
