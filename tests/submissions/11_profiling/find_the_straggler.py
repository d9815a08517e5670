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


# %% wrong: clocks set by the ends of collectives, blame for who comes last | wrong | says: the others wait longest in the steps in which it comes last
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


# %% wrong: the mean in place of the median | wrong | says: Compare with the \*median\* of all ranks
def find_the_straggler(traces):
    work = [work_of(trace) for trace in traces]
    rank = max(range(len(work)), key=lambda r: sum(work[r].values()))
    others = [w for r, w in enumerate(work) if r != rank]
    mean = {p: sum(w[p] for w in others) / len(others) for p in work[rank]}
    return [rank, max(mean, key=lambda p: work[rank][p] - mean[p])]


# %% wrong: who waits longest | wrong | says: it is there first
def find_the_straggler(traces):
    rank = max(range(len(traces)), key=lambda r: waited(traces[r]))
    work = [work_of(trace) for trace in traces]
    return rank, max(work[rank], key=lambda p: work[rank][p] - median(w[p] for w in work))


# %% wrong: waiting is the cause | wrong | says: In `all_reduce` a rank waits for others
def find_the_straggler(traces):
    rank = min(range(len(traces)), key=lambda r: waited(traces[r]))
    return rank, "all_reduce"


# %% wrong: the longest phase | wrong | says: compare each phase with the same one
def find_the_straggler(traces):
    rank = min(range(len(traces)), key=lambda r: waited(traces[r]))
    times = work_of(traces[rank])
    return rank, max(times, key=times.get)


# %% wrong: waiting within backward counts | wrong | says: A phase may contain `all_reduce`
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


# %% wrong: the largest excess of any phase | wrong | says: First find the rank, then its phase
def find_the_straggler(traces):
    work = [work_of(trace) for trace in traces]
    found = [
        (times[p] - median(w[p] for w in work), rank, p)
        for rank, times in enumerate(work)
        for p in times
    ]
    return max(found)[1:]


# %% wrong: by the clock of the ranks | wrong | says: Each clock has its own zero
def find_the_straggler(traces):
    starts = [sum(s for phase, s, _ in trace if phase == "all_reduce") for trace in traces]
    rank = starts.index(max(starts))
    work = [work_of(trace) for trace in traces]
    return rank, max(work[rank], key=lambda p: work[rank][p] - median(w[p] for w in work))


# %% wrong: who comes last most often | wrong | says: This rank comes last most often
def find_the_straggler(traces):
    calls = [sorted((s, e) for phase, s, e in trace if phase == "all_reduce") for trace in traces]
    lasts = []
    for together in zip(*calls):
        came = [start - end for start, end in together]
        lasts.append(came.index(max(came)))
    rank = max(range(len(traces)), key=lasts.count)
    work = [work_of(trace) for trace in traces]
    return rank, max(work[rank], key=lambda p: work[rank][p] - median(w[p] for w in work))


# %% wrong: by ratio | wrong | says: Milliseconds make it late, not a ratio
def find_the_straggler(traces):
    rank = min(range(len(traces)), key=lambda r: waited(traces[r]))
    work = [work_of(trace) for trace in traces]
    return rank, max(
        work[rank], key=lambda p: work[rank][p] / (median(w[p] for w in work) or work[rank][p])
    )


# %% wrong: only the first step | wrong | says: is not
def find_the_straggler(traces):
    calls = [min((s, e) for phase, s, e in trace if phase == "all_reduce") for trace in traces]
    came = [start - end for start, end in calls]
    rank = came.index(max(came))
    work = [work_of(trace) for trace in traces]
    return rank, max(work[rank], key=lambda p: work[rank][p] - median(w[p] for w in work))


# %% wrong: every rank has the phases of rank 1 | wrong | says: The rank is right
def find_the_straggler(traces):
    rank = min(range(len(traces)), key=lambda r: waited(traces[r]))
    work = [work_of(trace) for trace in traces]
    return rank, max(work[1], key=lambda p: work[rank][p] - median(w[p] for w in work))


# %% wrong: the rank alone | wrong | says: Return two things
def find_the_straggler(traces):
    return min(range(len(traces)), key=lambda r: waited(traces[r]))


# %% right: who works longest without waiting, the median of the others, a list comes back
def find_the_straggler(traces):
    work = [work_of(trace) for trace in traces]
    rank = max(range(len(work)), key=lambda r: sum(work[r].values()))
    others = [w for r, w in enumerate(work) if r != rank]
    return [rank, max(work[rank], key=lambda p: work[rank][p] - median(w[p] for w in others))]


# %% wrong: the least in place of the median | wrong | says: Compare with the \*median\* of all ranks
def find_the_straggler(traces):
    rank = min(range(len(traces)), key=lambda r: waited(traces[r]))
    work = [work_of(trace) for trace in traces]
    return rank, max(work[rank], key=lambda p: work[rank][p] - min(w[p] for w in work))


# %% wrong: the mean of all ranks | wrong | says: Compare with the \*median\* of all ranks
def find_the_straggler(traces):
    rank = min(range(len(traces)), key=lambda r: waited(traces[r]))
    work = [work_of(trace) for trace in traces]
    return rank, max(work[rank], key=lambda p: work[rank][p] - sum(w[p] for w in work) / len(work))


# %% wrong: a fixed list of phases | wrong | says: A phase that only this rank enters
def find_the_straggler(traces):
    rank = min(range(len(traces)), key=lambda r: waited(traces[r]))
    work = [work_of(trace) for trace in traces]
    return rank, max(
        ["data", "forward", "backward", "optimizer"],
        key=lambda p: work[rank][p] - median(w[p] for w in work),
    )


# %% wrong: the median of the ranks that have the phase | wrong | says: A phase that only this rank enters
def find_the_straggler(traces):
    rank = min(range(len(traces)), key=lambda r: waited(traces[r]))
    work = [work_of(trace) for trace in traces]
    return rank, max(work[rank], key=lambda p: work[rank][p] - median(w[p] for w in work if p in w))


# %% wrong: the longest step in place of the sum | wrong | says: Add up each phase over all steps
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


# %% wrong: only waiting that lies wholly within a phase | wrong | says: begin in one and end in the next
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


# %% wrong: all waiting is taken out of backward | wrong | says: The rank is right
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


# %% wrong: waiting is not taken out | wrong | says: A phase may contain `all_reduce`
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
