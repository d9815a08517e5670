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
# Time that spans of one kind share is counted more than once: merge the spans of a kind before you add up
# lengths.
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
# `exposed` contains communication that runs while the rank computes: each moment belongs to one part only.
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
# `data` contains reading that runs while the rank computes or communicates: each moment belongs to one part
# only.
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
# A span may begin in one step and end in another: cut it to each step before you measure.
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
# A moment in which the rank computes is `compute`, whatever else runs: subtract computation first.
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
# Return a list with one dict for each step.
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
# Return the dicts in the order of `steps`.
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
# Labels are counted as work: use only spans of the three kinds.
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
# A span that crosses the border of a step is left out: cut it to the step, and leave out only what is
# wholly outside.
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
# A span that crosses the border of a step is left out: cut it to the step, and leave out only what is
# wholly outside.
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
# A span that crosses the border of a step is left out: cut it to the step, and leave out only what is
# wholly outside.
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
# A span that begins before the step and ends after it is left out: a span has a part in the step if it
# begins before the step's end and ends after its beginning.
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
# A span may begin in one step and end in another: cut it to each step before you measure.
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
# The clock may begin anywhere, even far below 0: start the latest end so far at `float("-inf")`.
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
