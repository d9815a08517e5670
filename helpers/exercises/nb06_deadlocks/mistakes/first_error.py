import re
import statistics
from collections import defaultdict

FOLLOWS = ("closed by peer", "reset by peer", "timed out", "watchdog", "SIGTERM")


def failures(log):
    found = {}
    for rank in range(8):
        now = step = failed = None
        for time, who, level, text in log:
            if who != rank:
                continue
            now = now if time is None else time
            if text.endswith("done"):
                step, failed = now, None
            elif level == "ERROR" and failed is None:
                failed = now, text
        if failed:
            found[rank] = (failed[0] - step, failed[1])
    return found


def follows(text):
    return any(words in text for words in FOLLOWS)


def why(text):
    return "memory" if "memory" in text else "exception"


def not_sent(log, silent):
    said = [text for _, who, _, text in log if who == -1]
    for rank in silent:
        for text in said:
            if text.startswith(f"rank {rank} ended by"):
                if f"sending {text.split()[-1]} to rank {rank}" not in said:
                    return rank
    return None


# %% the clocks are taken as they are
# The ranks' clocks were compared as they are. Measure each rank's times from its last "done", which is the
# same moment on all ranks.
def first_error(log):
    found = failures(log)
    own = {r: f for r, f in found.items() if not follows(f[1])}
    if own:
        clock = {}
        for rank in own:
            now = None
            for time, who, _, text in log:
                if who == rank:
                    now = now if time is None else time
                    if text == own[rank][1]:
                        clock[rank] = now
        rank = min(clock, key=clock.get)
        return rank, why(own[rank][1])
    silent = [rank for rank in range(8) if rank not in found]
    rank = not_sent(log, silent)
    return (rank, "killed") if rank is not None else (silent[0], "stuck")


# %% the order of the lines is the order of time
# The lines were taken in the order of the log, which is the order in which they arrived. Compare the times
# since each rank's last "done".
def first_error(log):
    found = failures(log)
    own = {r: f for r, f in found.items() if not follows(f[1])}
    for _, rank, _, text in log:
        if rank in own and own[rank][1] == text:
            return rank, why(text)
    silent = [rank for rank in range(8) if rank not in found]
    rank = not_sent(log, silent)
    return (rank, "killed") if rank is not None else (silent[0], "stuck")


# %% consequences count
# This rank's error is a consequence: it says that another rank has gone or did not come. Leave such
# failures out.
def first_error(log):
    found = failures(log)
    rank = min(found, key=lambda r: found[r][0])
    return rank, why(found[rank][1])


# %% survived errors count
# This rank survived that error: it completed a step afterwards. Look only at lines after its last "done".
def first_error(log):
    own, silent = [], []
    for rank in range(8):
        lines = [line for line in log if line[1] == rank]
        last = max(i for i, line in enumerate(lines) if line[3].endswith("done"))
        errors = [i for i, line in enumerate(lines) if line[2] == "ERROR"]
        if not errors:
            silent.append(rank)
        elif not follows(lines[errors[0]][3]):
            time = [line[0] for line in lines[: errors[0] + 1] if line[0] is not None][-1]
            own.append((time - lines[last][0], rank, why(lines[errors[0]][3])))
    if own:
        return min(own)[1:]
    rank = not_sent(log, silent)
    return (rank, "killed") if rank is not None else ((silent or [None])[0], "stuck")


# %% the first own error after the last step, whatever came before it
# This rank's failure is its first ERROR after its last step, and that one is a consequence. Later errors
# are cleanup.
def first_error(log):
    own, silent = [], []
    for rank in range(8):
        lines = [line for line in log if line[1] == rank]
        last = max(i for i, line in enumerate(lines) if line[3].endswith("done"))
        errors = [i for i in range(last + 1, len(lines)) if lines[i][2] == "ERROR"]
        ours = [i for i in errors if not follows(lines[i][3])]
        if not errors:
            silent.append(rank)
        if ours:
            time = [line[0] for line in lines[: ours[0] + 1] if line[0] is not None][-1]
            own.append((time - lines[last][0], rank, why(lines[ours[0]][3])))
    if own:
        return min(own)[1:]
    rank = not_sent(log, silent)
    return (rank, "killed") if rank is not None else (silent[0], "stuck")


# %% a signal before an error
# A signal was looked for first. A rank may be ended because another one failed: look for failures of a
# rank's own first.
def first_error(log):
    found = failures(log)
    silent = [rank for rank in range(8) if rank not in found]
    rank = not_sent(log, silent)
    if rank is not None:
        return rank, "killed"
    own = {r: f for r, f in found.items() if not follows(f[1])}
    if own:
        rank = min(own, key=lambda r: own[r][0])
        return rank, why(own[rank][1])
    return silent[0], "stuck"


# %% whoever was ended by a signal, also one that has spoken
# This rank reported a failure before the signal ended it. "killed" is a rank without a failure.
def first_error(log):
    found = failures(log)
    own = {r: f for r, f in found.items() if not follows(f[1])}
    if own:
        rank = min(own, key=lambda r: own[r][0])
        return rank, why(own[rank][1])
    rank = not_sent(log, range(8))
    if rank is not None:
        return rank, "killed"
    return next(rank for rank in range(8) if rank not in found), "stuck"


# %% lines without a time come last
# A line without a time was not given the right one. It was written right after the previous line of its own
# rank, so it has that line's time.
def first_error(log):
    found, silent = [], []
    for rank in range(8):
        lines = [line for line in log if line[1] == rank]
        last = max(i for i, line in enumerate(lines) if line[3].endswith("done"))
        errors = [line for line in lines[last:] if line[2] == "ERROR"]
        if not errors:
            silent.append(rank)
        elif not follows(errors[0][3]):
            time = float("inf") if errors[0][0] is None else errors[0][0] - lines[last][0]
            found.append((time, rank, errors[0][3]))
    if found:
        _, rank, text = min(found)
        return rank, why(text)
    rank = not_sent(log, silent)
    return (rank, "killed") if rank is not None else (silent[0], "stuck")


# %% a line without a time has that of the line before it in the log
# A line without a time was not given the right one. It was written right after the previous line of its own
# rank, so it has that line's time.
def first_error(log):
    now, timed = 0.0, []
    for time, who, level, text in log:
        now = now if time is None else time
        timed.append((now, who, level, text))
    found = failures(timed)
    own = {r: f for r, f in found.items() if not follows(f[1])}
    if own:
        rank = min(own, key=lambda r: own[r][0])
        return rank, why(own[rank][1])
    silent = [rank for rank in range(8) if rank not in found]
    rank = not_sent(log, silent)
    return (rank, "killed") if rank is not None else (silent[0], "stuck")


# %% memory is an exception, too
# The message contains "memory", so the cause is "memory".
def first_error(log):
    found = failures(log)
    own = {r: f for r, f in found.items() if not follows(f[1])}
    if own:
        return min(own, key=lambda r: own[r][0]), "exception"
    silent = [rank for rank in range(8) if rank not in found]
    rank = not_sent(log, silent)
    return (rank, "killed") if rank is not None else (silent[0], "stuck")


# %% nobody is ever killed
# This is not what the agent's lines say. A rank without a failure was killed if it was ended by a signal
# that the agent had not sent to it. Otherwise it was stuck.
def first_error(log):
    found = failures(log)
    own = {r: f for r, f in found.items() if not follows(f[1])}
    if own:
        rank = min(own, key=lambda r: own[r][0])
        return rank, why(own[rank][1])
    return next(rank for rank in range(8) if rank not in found), "stuck"


# %% an exit code for a signal
# No signal ended this rank: it left with an exit code, after the agent asked it to.
def first_error(log):
    # resolve times
    steps = defaultdict(dict); seen = {}; fail={}; prev={}
    ended={}; sent=defaultdict(set)
    for t, rank, level, msg in log:
        if rank == -1:
            m = re.match(r"sending (\w+) to rank (\d+)", msg)
            if m: sent[int(m[2])].add(m[1])
            m = re.match(r"rank (\d+) (?:ended by|left with) (\w+)", msg)
            if m: ended[int(m[1])] = m[2]
            continue
        if t is None: t = prev.get(rank)
        prev[rank] = t
        m = re.match(r"step (\d+) done", msg)
        if m:
            steps[rank][int(m[1])] = t
            fail.pop(rank, None)
        elif level == "ERROR" and rank not in fail:
            fail[rank] = (t, msg)
    own = {r: f for r, f in fail.items() if not any(w in f[1] for w in FOLLOWS)}
    if own:
        # offsets relative: graph of common steps
        off = {}
        ranks = list(set(steps)|set(own))
        for root in ranks:
            if root in off: continue
            off[root]=0.0; stack=[root]
            while stack:
                a=stack.pop()
                for b in ranks:
                    if b in off: continue
                    common=[s for s in steps[a] if s in steps[b] and steps[a][s] is not None and steps[b][s] is not None]
                    if common:
                        off[b]=off[a]+statistics.median(steps[b][s]-steps[a][s] for s in common); stack.append(b)
        r=min(own, key=lambda r:(own[r][0] or 0)-off[r])
        return r, "memory" if "memory" in own[r][1] else "exception"
    alive=[r for r in range(8) if r not in fail]
    for r in alive:
        if r in ended and ended[r] not in sent[r]: return r,"killed"
    return alive[0],"stuck"


# %% any signal counts
# The agent sent this signal itself: it ends the other ranks after one has failed. Look for a signal that it
# did not send to that rank.
def first_error(log):
    found = failures(log)
    own = {r: f for r, f in found.items() if not follows(f[1])}
    if own:
        rank = min(own, key=lambda r: own[r][0])
        return rank, why(own[rank][1])
    for _, who, _, text in log:
        if who == -1 and " ended by " in text and int(text.split()[1]) not in found:
            return int(text.split()[1]), "killed"
    return next(rank for rank in range(8) if rank not in found), "stuck"


# %% the last error of each rank
# A rank's last ERROR was taken for its failure. The first one after its last step is the failure; later
# errors are cleanup.
def first_error(log):
    own, silent = [], []
    for rank in range(8):
        lines = [line for line in log if line[1] == rank]
        last = max(i for i, line in enumerate(lines) if line[3].endswith("done"))
        errors = [i for i in range(last + 1, len(lines)) if lines[i][2] == "ERROR"]
        if not errors:
            silent.append(rank)
        elif not follows(lines[errors[-1]][3]):
            time = [line[0] for line in lines[: errors[-1] + 1] if line[0] is not None][-1]
            own.append((time - lines[last][0], rank, why(lines[errors[-1]][3])))
    if own:
        return min(own)[1:]
    rank = not_sent(log, silent)
    return (rank, "killed") if rank is not None else (silent[0], "stuck")


# %% the first that a signal ended, also one that has spoken
# This rank reported a failure before the signal ended it. "killed" is a rank without a failure.
def first_error(log):
    found = failures(log)
    own = {r: f for r, f in found.items() if not follows(f[1])}
    if own:
        rank = min(own, key=lambda r: own[r][0])
        return rank, why(own[rank][1])
    said = [text for _, who, _, text in log if who == -1]
    for text in said:
        if " ended by " in text:
            rank = int(text.split()[1])
            if f"sending {text.split()[-1]} to rank {rank}" not in said:
                return rank, "killed"
    return next(rank for rank in range(8) if rank not in found), "stuck"
