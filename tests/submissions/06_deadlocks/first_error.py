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


# %% right: a pass over the lines of each rank
def first_error(log):
    found = failures(log)
    own = {rank: failure for rank, failure in found.items() if not follows(failure[1])}
    if own:
        rank = min(own, key=lambda r: own[r][0])
        return rank, why(own[rank][1])
    silent = [rank for rank in range(8) if rank not in found]
    rank = not_sent(log, silent)
    return (rank, "killed") if rank is not None else (silent[0], "stuck")


# %% right: clocks set by the first step that all have, from the end backwards
import re


def first_error(log):
    ends = [
        {line[3]: line[0] for line in log if line[1] == r and line[3].endswith("done")}
        for r in range(8)
    ]
    shared = set.intersection(*map(set, ends)).pop()
    first, silent = None, set()
    for rank in range(8):
        fail, times = None, []
        for time, _, level, text in reversed([line for line in log if line[1] == rank]):
            if text.endswith("done"):
                if fail and fail[0] is None:
                    fail = (time, fail[1])
                break
            if fail and fail[0] is None:
                fail = (time, fail[1])
            if level == "ERROR":
                fail = (time, text)
        if fail is None:
            silent.add(rank)
        elif not re.search("|".join(FOLLOWS), fail[1]):
            at = fail[0] - ends[rank][shared]
            if first is None or at < first[0]:
                first = at, rank, why(fail[1])
    if first:
        return list(first[1:])
    agent = " ".join(line[3] for line in log if line[1] == -1)
    for rank, signal in re.findall(r"rank (\d) ended by (SIG\w+)", agent):
        if int(rank) in silent and not re.search(f"sending {signal} to rank {rank}", agent):
            return [int(rank), "killed"]
    return [min(silent), "stuck"]


# %% wrong: only SIGTERM is the agent's | wrong | says: expected \(\d, 'killed'\)
def first_error(log):
    found = failures(log)
    own = {r: f for r, f in found.items() if not follows(f[1])}
    if own:
        rank = min(own, key=lambda r: own[r][0])
        return rank, why(own[rank][1])
    silent = [rank for rank in range(8) if rank not in found]
    for _, who, _, text in log:
        if who == -1 and " ended by " in text and not text.endswith("SIGTERM"):
            if int(text.split()[1]) in silent:
                return int(text.split()[1]), "killed"
    return silent[0], "stuck"


# %% wrong: ranks up to 6 | wrong | says: expected
def first_error(log):
    found = {r: f for r, f in failures(log).items() if r < 7}
    own = {r: f for r, f in found.items() if not follows(f[1])}
    if own:
        rank = min(own, key=lambda r: own[r][0])
        return rank, why(own[rank][1])
    silent = [rank for rank in range(7) if rank not in found]
    rank = not_sent(log, silent)
    return (rank, "killed") if rank is not None else ((silent or [None])[0], "stuck")


# %% wrong: own failures of the first seven ranks | wrong | says: expected \(7, '
def first_error(log):
    found = failures(log)
    own = {r: f for r, f in found.items() if not follows(f[1]) and r < 7}
    if own:
        rank = min(own, key=lambda r: own[r][0])
        return rank, why(own[rank][1])
    silent = [rank for rank in range(8) if rank not in found]
    rank = not_sent(log, silent)
    return (rank, "killed") if rank is not None else ((silent or [None])[0], "stuck")
