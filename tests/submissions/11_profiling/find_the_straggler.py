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


# %% right: who waits least, then the median of each phase
def find_the_straggler(traces):
    work = [work_of(trace) for trace in traces]
    rank = min(range(len(traces)), key=lambda r: waited(traces[r]))
    return rank, max(work[rank], key=lambda p: work[rank][p] - median(w[p] for w in work))


# %% wrong: only the first step | wrong | says: is not
def find_the_straggler(traces):
    calls = [min((s, e) for phase, s, e in trace if phase == "all_reduce") for trace in traces]
    came = [start - end for start, end in calls]
    rank = came.index(max(came))
    work = [work_of(trace) for trace in traces]
    return rank, max(work[rank], key=lambda p: work[rank][p] - median(w[p] for w in work))


# %% right: who works longest without waiting, the median of the others, a list comes back
def find_the_straggler(traces):
    work = [work_of(trace) for trace in traces]
    rank = max(range(len(work)), key=lambda r: sum(work[r].values()))
    others = [w for r, w in enumerate(work) if r != rank]
    return [rank, max(work[rank], key=lambda p: work[rank][p] - median(w[p] for w in others))]
