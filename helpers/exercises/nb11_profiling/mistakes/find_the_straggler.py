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
# Others wait longest for this rank in some steps, but in other steps it waits itself. Find the rank that
# waits least in `all_reduce`, over all steps.
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
# The rank is right, but the phase is not: compare with the *median* of all ranks. A single rank that is far
# off moves the mean, and may itself be the minimum or the maximum.
def find_the_straggler(traces):
    work = [work_of(trace) for trace in traces]
    rank = max(range(len(work)), key=lambda r: sum(work[r].values()))
    others = [w for r, w in enumerate(work) if r != rank]
    mean = {p: sum(w[p] for w in others) / len(others) for p in work[rank]}
    return [rank, max(mean, key=lambda p: work[rank][p] - mean[p])]


# %% who waits longest
# This rank waits longest in `all_reduce`, so it arrives first: the straggler is the rank that waits least.
def find_the_straggler(traces):
    rank = max(range(len(traces)), key=lambda r: waited(traces[r]))
    work = [work_of(trace) for trace in traces]
    return rank, max(work[rank], key=lambda p: work[rank][p] - median(w[p] for w in work))


# %% waiting is the cause
# `all_reduce` is not a phase of work: while it runs, its rank waits. Name the phase that makes the rank
# late.
def find_the_straggler(traces):
    rank = min(range(len(traces)), key=lambda r: waited(traces[r]))
    return rank, "all_reduce"


# %% the longest phase
# The rank is right, but the phase is not: its longest phase may be as long on all ranks. Compare each phase
# with the same phase on the others.
def find_the_straggler(traces):
    rank = min(range(len(traces)), key=lambda r: waited(traces[r]))
    times = work_of(traces[rank])
    return rank, max(times, key=times.get)


# %% waiting within backward counts
# The rank is right, but the phase is not: part of the time that you count for it is waiting. An `all_reduce`
# may be inside any phase, or begin in one and end in the next. Subtract from each phase the waiting inside it.
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
# This rank takes longer than others in this phase, but less in another, and waits for other ranks. First
# find the rank, then its phase.
def find_the_straggler(traces):
    work = [work_of(trace) for trace in traces]
    found = [
        (times[p] - median(w[p] for w in work), rank, p)
        for rank, times in enumerate(work)
        for p in times
    ]
    return max(found)[1:]


# %% by the clock of the ranks
# Times on different ranks' clocks are compared, but each clock has its own zero: compare lengths.
def find_the_straggler(traces):
    starts = [sum(s for phase, s, _ in trace if phase == "all_reduce") for trace in traces]
    rank = starts.index(max(starts))
    work = [work_of(trace) for trace in traces]
    return rank, max(work[rank], key=lambda p: work[rank][p] - median(w[p] for w in work))


# %% who comes last most often
# This rank comes last most often, but in other steps it waits itself. Find the rank that waits least in
# `all_reduce`, over all steps.
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
# The rank is right, but the phase is not: compare differences, not ratios. A short phase can double and
# cost only little time.
def find_the_straggler(traces):
    rank = min(range(len(traces)), key=lambda r: waited(traces[r]))
    work = [work_of(trace) for trace in traces]
    return rank, max(
        work[rank], key=lambda p: work[rank][p] / (median(w[p] for w in work) or work[rank][p])
    )


# %% every rank has the phases of rank 1
# The rank is right, but the phase is not: a phase that only this rank enters counts, too. The others take 0
# ms for it, also in the median.
def find_the_straggler(traces):
    rank = min(range(len(traces)), key=lambda r: waited(traces[r]))
    work = [work_of(trace) for trace in traces]
    return rank, max(work[1], key=lambda p: work[rank][p] - median(w[p] for w in work))


# %% the rank alone
# Return two things: a rank and a phase.
def find_the_straggler(traces):
    return min(range(len(traces)), key=lambda r: waited(traces[r]))


# %% the least in place of the median
# The rank is right, but the phase is not: compare with the *median* of all ranks. A single rank that is far
# off moves the mean, and may itself be the minimum or the maximum.
def find_the_straggler(traces):
    rank = min(range(len(traces)), key=lambda r: waited(traces[r]))
    work = [work_of(trace) for trace in traces]
    return rank, max(work[rank], key=lambda p: work[rank][p] - min(w[p] for w in work))


# %% the mean of all ranks
# The rank is right, but the phase is not: compare with the *median* of all ranks. A single rank that is far
# off moves the mean, and may itself be the minimum or the maximum.
def find_the_straggler(traces):
    rank = min(range(len(traces)), key=lambda r: waited(traces[r]))
    work = [work_of(trace) for trace in traces]
    return rank, max(work[rank], key=lambda p: work[rank][p] - sum(w[p] for w in work) / len(work))


# %% a fixed list of phases
# The rank is right, but the phase is not: a phase that only this rank enters counts, too. The others take 0
# ms for it, also in the median.
def find_the_straggler(traces):
    rank = min(range(len(traces)), key=lambda r: waited(traces[r]))
    work = [work_of(trace) for trace in traces]
    return rank, max(
        ["data", "forward", "backward", "optimizer"],
        key=lambda p: work[rank][p] - median(w[p] for w in work),
    )


# %% the median of the ranks that have the phase
# The rank is right, but the phase is not: a phase that only this rank enters counts, too. The others take 0
# ms for it, also in the median.
def find_the_straggler(traces):
    rank = min(range(len(traces)), key=lambda r: waited(traces[r]))
    work = [work_of(trace) for trace in traces]
    return rank, max(work[rank], key=lambda p: work[rank][p] - median(w[p] for w in work if p in w))


# %% the longest step in place of the sum
# The rank is right, but the phase is not: add up each phase over all steps. One long step does not make a
# rank the straggler.
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
# The rank is right, but the phase is not: part of the time that you count for it is waiting. An `all_reduce`
# may be inside any phase, or begin in one and end in the next. Subtract from each phase the waiting inside it.
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
# The rank is right, but the phase is not: part of the time that you count for it is waiting. An `all_reduce`
# may be inside any phase, or begin in one and end in the next. Subtract from each phase the waiting inside it.
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
# The rank is right, but the phase is not: part of the time that you count for it is waiting. An `all_reduce`
# may be inside any phase, or begin in one and end in the next. Subtract from each phase the waiting inside it.
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


# %% by ratio, unbounded where others have no such phase
# The rank is right, but the phase is not: compare differences, not ratios. A short phase can double and
# cost only little time.
def find_the_straggler(traces):
    waits = [sum(e - s for p, s, e in trace if p == "all_reduce") for trace in traces]
    rank = waits.index(min(waits))
    work = [work_of(trace) for trace in traces]
    phases = {phase for times in work for phase in times}
    return rank, max(
        phases, key=lambda p: work[rank][p] / max(1e-9, median(times[p] for times in work))
    )


# %% the shortest single wait
# This rank has the shortest single `all_reduce`: add up each rank's time in `all_reduce` over all steps.
def find_the_straggler(traces):
    waits = [min(e - s for p, s, e in trace if p == "all_reduce") for trace in traces]
    rank = waits.index(min(waits))
    work = [work_of(trace) for trace in traces]
    phases = {phase for times in work for phase in times}
    return rank, max(phases, key=lambda p: work[rank][p] - median(times[p] for times in work))
