from collections import Counter
from statistics import median


def work_of(trace):
    waits = [(s, e) for phase, s, e in trace if phase == "all_reduce"]
    times = Counter()
    for phase, start, end in trace:
        if phase != "all_reduce":
            times[phase] += end - start
            times[phase] -= sum(max(0.0, min(end, e) - max(start, s)) for s, e in waits)
    return times


def waited(trace):
    return sum(e - s for phase, s, e in trace if phase == "all_reduce")


# %% clocks set by the ends of collectives, blame for who comes last
# For this rank the others wait longest in the steps in which it comes last, and it waits itself in other
# steps. Asked for is the rank that waits least in `all_reduce`, over all steps.
def find_the_straggler(traces):
    calls = [sorted((s, e) for phase, s, e in trace if phase == "all_reduce") for trace in traces]
    blame = [0.0] * len(traces)
    for together in zip(*calls):
        came = [start - end for start, end in together]
        last = came.index(max(came))
        blame[last] += came[last] - median(came)
    rank = blame.index(max(blame))
    work = [work_of(trace) for trace in traces]
    phases = {phase for times in work for phase in times}
    return rank, max(phases, key=lambda p: work[rank][p] - median(w[p] for w in work))


# %% the mean in place of the median
# The rank is right. Compare with the *median* of all ranks: one rank that is far off moves a mean, and
# may itself be the least or the largest.
def find_the_straggler(traces):
    work = [work_of(trace) for trace in traces]
    rank = max(range(len(work)), key=lambda r: sum(work[r].values()))
    others = [w for r, w in enumerate(work) if r != rank]
    mean = {p: sum(w[p] for w in others) / len(others) for p in work[rank]}
    return [rank, max(mean, key=lambda p: work[rank][p] - mean[p])]


# %% who waits longest
# This rank waits longest in `all_reduce`: it is there first. For whom does it wait?
def find_the_straggler(traces):
    rank = max(range(len(traces)), key=lambda r: waited(traces[r]))
    work = [work_of(trace) for trace in traces]
    return rank, max(work[rank], key=lambda p: work[rank][p] - median(w[p] for w in work))


# %% waiting is the cause
# In `all_reduce` a rank waits for others. Name the phase that makes one come late.
def find_the_straggler(traces):
    rank = min(range(len(traces)), key=lambda r: waited(traces[r]))
    return rank, "all_reduce"


# %% the longest phase
# The rank is right. Its longest phase may be as long on all ranks: compare each phase with the same one
# elsewhere.
def find_the_straggler(traces):
    rank = min(range(len(traces)), key=lambda r: waited(traces[r]))
    times = work_of(traces[rank])
    return rank, max(times, key=times.get)


# %% waiting within backward counts
# A phase may contain `all_reduce`, and that is waiting: take it out before you compare phases.
def find_the_straggler(traces):
    work = []
    for trace in traces:
        times = Counter()
        for phase, start, end in trace:
            if phase != "all_reduce":
                times[phase] += end - start
        work.append(times)
    found = [
        (times[p] - median(w[p] for w in work), rank, p)
        for rank, times in enumerate(work)
        for p in times
    ]
    return max(found)[1:]


# %% the largest excess of any phase
# This rank takes longer in this phase than others, but makes up for it in another: it waits for others.
# First find the rank, then its phase.
def find_the_straggler(traces):
    work = [work_of(trace) for trace in traces]
    found = [
        (times[p] - median(w[p] for w in work), rank, p)
        for rank, times in enumerate(work)
        for p in times
    ]
    return max(found)[1:]


# %% by the clock of the ranks
# Each clock has its own zero: a moment of one rank says nothing beside a moment of another. Compare
# lengths.
def find_the_straggler(traces):
    starts = [sum(s for phase, s, _ in trace if phase == "all_reduce") for trace in traces]
    rank = starts.index(max(starts))
    work = [work_of(trace) for trace in traces]
    return rank, max(work[rank], key=lambda p: work[rank][p] - median(w[p] for w in work))


# %% who comes last most often
# This rank comes last most often, and waits itself in other steps. Asked for is the rank that waits least
# in `all_reduce`, over all steps.
def find_the_straggler(traces):
    calls = [sorted((s, e) for phase, s, e in trace if phase == "all_reduce") for trace in traces]
    lasts = []
    for together in zip(*calls):
        came = [start - end for start, end in together]
        lasts.append(came.index(max(came)))
    rank = max(range(len(traces)), key=lasts.count)
    work = [work_of(trace) for trace in traces]
    return rank, max(work[rank], key=lambda p: work[rank][p] - median(w[p] for w in work))


# %% by ratio
# The rank is right. Milliseconds make it late, not a ratio: a short phase may double and cost little.
def find_the_straggler(traces):
    rank = min(range(len(traces)), key=lambda r: waited(traces[r]))
    work = [work_of(trace) for trace in traces]
    return rank, max(
        work[rank], key=lambda p: work[rank][p] / (median(w[p] for w in work) or work[rank][p])
    )


# %% every rank has the phases of rank 1
# The rank is right. A phase that only this rank enters takes it longer, too: the others take 0 ms for it,
# also in the median.
def find_the_straggler(traces):
    rank = min(range(len(traces)), key=lambda r: waited(traces[r]))
    work = [work_of(trace) for trace in traces]
    return rank, max(work[1], key=lambda p: work[rank][p] - median(w[p] for w in work))


# %% the rank alone
# Return two things: a rank, and a phase.
def find_the_straggler(traces):
    return min(range(len(traces)), key=lambda r: waited(traces[r]))


# %% the least in place of the median
# The rank is right. Compare with the *median* of all ranks: one rank that is far off moves a mean, and
# may itself be the least or the largest.
def find_the_straggler(traces):
    rank = min(range(len(traces)), key=lambda r: waited(traces[r]))
    work = [work_of(trace) for trace in traces]
    return rank, max(work[rank], key=lambda p: work[rank][p] - min(w[p] for w in work))


# %% the mean of all ranks
# The rank is right. Compare with the *median* of all ranks: one rank that is far off moves a mean, and
# may itself be the least or the largest.
def find_the_straggler(traces):
    rank = min(range(len(traces)), key=lambda r: waited(traces[r]))
    work = [work_of(trace) for trace in traces]
    return rank, max(work[rank], key=lambda p: work[rank][p] - sum(w[p] for w in work) / len(work))


# %% a fixed list of phases
# The rank is right. A phase that only this rank enters takes it longer, too: the others take 0 ms for it,
# also in the median.
def find_the_straggler(traces):
    rank = min(range(len(traces)), key=lambda r: waited(traces[r]))
    work = [work_of(trace) for trace in traces]
    return rank, max(
        ["data", "forward", "backward", "optimizer"],
        key=lambda p: work[rank][p] - median(w[p] for w in work),
    )


# %% the median of the ranks that have the phase
# The rank is right. A phase that only this rank enters takes it longer, too: the others take 0 ms for it,
# also in the median.
def find_the_straggler(traces):
    rank = min(range(len(traces)), key=lambda r: waited(traces[r]))
    work = [work_of(trace) for trace in traces]
    return rank, max(work[rank], key=lambda p: work[rank][p] - median(w[p] for w in work if p in w))


# %% the longest step in place of the sum
# The rank is right. Add up each phase over all steps before you compare: one long step is one step.
def find_the_straggler(traces):
    work = []
    for trace in traces:
        waits = [(s, e) for phase, s, e in trace if phase == "all_reduce"]
        times = Counter()
        for phase, s, e in trace:
            if phase != "all_reduce":
                rest = e - s - sum(max(0.0, min(e, b) - max(s, a)) for a, b in waits)
                times[phase] = max(times[phase], rest)
        work.append(times)
    rank = min(range(len(traces)), key=lambda r: waited(traces[r]))
    return rank, max(work[rank], key=lambda p: work[rank][p] - median(w[p] for w in work))


# %% only waiting that lies wholly within a phase
# The rank is right. An `all_reduce` may lie in any phase, or begin in one and end in the next: take out
# of each phase the part of the waiting that lies in it.
def find_the_straggler(traces):
    work = []
    for trace in traces:
        waits = [(s, e) for phase, s, e in trace if phase == "all_reduce"]
        times = Counter()
        for phase, s, e in trace:
            if phase != "all_reduce":
                times[phase] += e - s - sum(b - a for a, b in waits if s <= a and b <= e)
        work.append(times)
    rank = min(range(len(traces)), key=lambda r: waited(traces[r]))
    return rank, max(work[rank], key=lambda p: work[rank][p] - median(w[p] for w in work))


# %% all waiting is taken out of backward
# The rank is right. An `all_reduce` may lie in any phase, or begin in one and end in the next: take out
# of each phase the part of the waiting that lies in it.
def find_the_straggler(traces):
    work = []
    for trace in traces:
        waits = [(s, e) for phase, s, e in trace if phase == "all_reduce"]
        times = Counter()
        for phase, s, e in trace:
            if phase != "all_reduce":
                times[phase] += e - s
        times["backward"] -= sum(e - s for s, e in waits)
        work.append(times)
    rank = min(range(len(traces)), key=lambda r: waited(traces[r]))
    return rank, max(work[rank], key=lambda p: work[rank][p] - median(w[p] for w in work))


# %% waiting is not taken out
# A phase may contain `all_reduce`, and that is waiting: take it out before you compare phases.
def find_the_straggler(traces):
    work = []
    for trace in traces:
        waits = [(s, e) for phase, s, e in trace if phase == "all_reduce"]
        times = Counter()
        for phase, s, e in trace:
            if phase != "all_reduce":
                times[phase] += e - s
        work.append(times)
    rank = min(range(len(traces)), key=lambda r: waited(traces[r]))
    return rank, max(work[rank], key=lambda p: work[rank][p] - median(w[p] for w in work))
