# %% places in the list are compared, not numbers
# Entries are compared by their place in the list, but the lists may begin at different numbers. Match them
# by `collective_seq_id`.
def who_hangs(dumps):
    longest = max(len(d["entries"]) for d in dumps)
    for i in range(longest):
        missing = [r for r, d in enumerate(dumps) if i >= len(d["entries"])]
        seq = next(d["entries"][i]["collective_seq_id"] for d in dumps if i < len(d["entries"]))
        if missing:
            return "missing", seq, missing
        for kind, key in (("op", "profiling_name"), ("size", "input_sizes")):
            seen = [str(d["entries"][i][key]) for d in dumps]
            usual = max(seen, key=seen.count)
            if any(s != usual for s in seen):
                return kind, seq, [r for r, s in enumerate(seen) if s != usual]
    return "none", 0, []


# %% what the ring buffer has lost counts as missing
# A rank whose dump begins later is taken for missing: the ring buffer has dropped its oldest entries. Begin
# at the first number that every dump still has.
def who_hangs(dumps):
    tables = [{e["collective_seq_id"]: e for e in dump["entries"]} for dump in dumps]
    for seq in range(1, max(max(table) for table in tables) + 1):
        missing = [rank for rank, table in enumerate(tables) if seq not in table]
        if missing:
            return "missing", seq, missing
        for kind, key in (("op", "profiling_name"), ("size", "input_sizes")):
            seen = [str(table[seq][key]) for table in tables]
            usual = max(seen, key=seen.count)
            culprits = [rank for rank, what in enumerate(seen) if what != usual]
            if culprits:
                return kind, seq, culprits
    return "none", 0, []


# %% those that wait are named
# These are the ranks that wait. Name those for which they wait.
def who_hangs(dumps):
    tables = [{e["collective_seq_id"]: e for e in dump["entries"]} for dump in dumps]
    first, last = max(min(table) for table in tables), max(max(table) for table in tables)
    for seq in range(first, last + 1):
        have = [rank for rank, table in enumerate(tables) if seq in table]
        if len(have) < len(dumps):
            return "missing", seq, have
        for kind, key in (("op", "profiling_name"), ("size", "input_sizes")):
            seen = [str(table[seq][key]) for table in tables]
            usual = max(seen, key=seen.count)
            culprits = [rank for rank, what in enumerate(seen) if what != usual]
            if culprits:
                return kind, seq, culprits
    return "none", 0, []


# %% the last number instead of the first
# This is the last collective that goes wrong. Return the first one.
def who_hangs(dumps):
    tables = [{e["collective_seq_id"]: e for e in dump["entries"]} for dump in dumps]
    first, last = max(min(table) for table in tables), max(max(table) for table in tables)
    for seq in range(last, first - 1, -1):
        missing = [rank for rank, table in enumerate(tables) if seq not in table]
        if missing:
            return "missing", seq, missing
        for kind, key in (("op", "profiling_name"), ("size", "input_sizes")):
            seen = [str(table[seq][key]) for table in tables]
            usual = max(seen, key=seen.count)
            culprits = [rank for rank, what in enumerate(seen) if what != usual]
            if culprits:
                return kind, seq, culprits
    return "none", 0, []


# %% only missing ranks are looked for
# Only missing entries are looked for. Ranks may also differ in the op or in the size.
def who_hangs(dumps):
    last = [dump["entries"][-1]["collective_seq_id"] for dump in dumps]
    behind = [rank for rank, seq in enumerate(last) if seq < max(last)]
    if behind:
        return "missing", min(last) + 1, behind
    return "none", 0, []


# %% rank 0 is taken for right
# Rank 0 is taken for right, but it may be a culprit. What most ranks have is right.
def who_hangs(dumps):
    tables = [{e["collective_seq_id"]: e for e in dump["entries"]} for dump in dumps]
    first, last = max(min(table) for table in tables), max(max(table) for table in tables)
    for seq in range(first, last + 1):
        missing = [rank for rank, table in enumerate(tables) if seq not in table]
        if missing:
            return "missing", seq, missing
        for kind, key in (("op", "profiling_name"), ("size", "input_sizes")):
            seen = [str(table[seq][key]) for table in tables]
            culprits = [rank for rank, what in enumerate(seen) if what != seen[0]]
            if culprits:
                return kind, seq, culprits
    return "none", 0, []


# %% it always says the same
# Something is wrong in these dumps, but the answer says that nothing is.
def who_hangs(dumps):
    return "none", 0, []


# %% only the rank
# Return three things: the kind, the `collective_seq_id` and the list of ranks.
def who_hangs(dumps):
    last = [dump["entries"][-1]["collective_seq_id"] for dump in dumps]
    return last.index(min(last))


# %% missing ranks are looked for first, over all numbers
# A missing entry at a later number is returned, but a mismatch comes first. Check all three kinds at each
# number before going on to the next.
def who_hangs(dumps):
    tables = [{e["collective_seq_id"]: e for e in dump["entries"]} for dump in dumps]
    numbers = range(max(map(min, tables)), max(map(max, tables)) + 1)
    for seq in numbers:
        missing = [rank for rank, table in enumerate(tables) if seq not in table]
        if missing:
            return "missing", seq, missing
    for seq in numbers:
        for kind, key in (("op", "profiling_name"), ("size", "input_sizes")):
            seen = [str(table[seq][key]) for table in tables]
            usual = max(seen, key=seen.count)
            culprits = [rank for rank, what in enumerate(seen) if what != usual]
            if culprits:
                return kind, seq, culprits
    return "none", 0, []


# %% sizes are compared before ops
# At this number the ops differ, and so do the sizes. Check the op before the size.
def who_hangs(dumps):
    tables = [{e["collective_seq_id"]: e for e in dump["entries"]} for dump in dumps]
    for seq in range(max(map(min, tables)), max(map(max, tables)) + 1):
        missing = [rank for rank, table in enumerate(tables) if seq not in table]
        if missing:
            return "missing", seq, missing
        for kind, key in (("size", "input_sizes"), ("op", "profiling_name")):
            seen = [str(table[seq][key]) for table in tables]
            usual = max(seen, key=seen.count)
            culprits = [rank for rank, what in enumerate(seen) if what != usual]
            if culprits:
                return kind, seq, culprits
    return "none", 0, []


# %% only the first culprit
# Only one culprit is named. There may be several: return all of them.
def who_hangs(dumps):
    tables = [{e["collective_seq_id"]: e for e in dump["entries"]} for dump in dumps]
    first, last = max(min(table) for table in tables), max(max(table) for table in tables)
    for seq in range(first, last + 1):
        missing = [rank for rank, table in enumerate(tables) if seq not in table]
        if missing:
            return "missing", seq, missing[:1]
        for kind, key in (("op", "profiling_name"), ("size", "input_sizes")):
            seen = [str(table[seq][key]) for table in tables]
            usual = max(seen, key=seen.count)
            culprits = [rank for rank, what in enumerate(seen) if what != usual]
            if culprits:
                return kind, seq, culprits[:1]
    return "none", 0, []


# %% only the number of elements is compared
# Two sizes with the same number of elements are taken for equal. Compare `input_sizes` as lists.
import math


def who_hangs(dumps):
    tables = [{e["collective_seq_id"]: e for e in dump["entries"]} for dump in dumps]
    first, last = max(min(table) for table in tables), max(max(table) for table in tables)
    for seq in range(first, last + 1):
        missing = [rank for rank, table in enumerate(tables) if seq not in table]
        if missing:
            return "missing", seq, missing
        for kind, key in (("op", "profiling_name"), ("size", "input_sizes")):
            seen = [table[seq][key] for table in tables]
            if kind == "size":
                seen = [math.prod(s[0]) for s in seen]
            usual = max(seen, key=seen.count)
            culprits = [rank for rank, what in enumerate(seen) if what != usual]
            if culprits:
                return kind, seq, culprits
    return "none", 0, []


# %% it begins at the first number of any dump
# A rank whose dump begins later is taken for missing: the ring buffer has dropped its oldest entries. Begin at the
# first number that every dump still has.
def who_hangs(dumps):
    tables = [{e["collective_seq_id"]: e for e in dump["entries"]} for dump in dumps]
    first, last = min(min(table) for table in tables), max(max(table) for table in tables)
    for seq in range(first, last + 1):
        missing = [rank for rank, table in enumerate(tables) if seq not in table]
        if missing:
            return "missing", seq, missing
        for kind, key in (("op", "profiling_name"), ("size", "input_sizes")):
            seen = [str(table[seq][key]) for table in tables]
            usual = max(seen, key=seen.count)
            culprits = [rank for rank, what in enumerate(seen) if what != usual]
            if culprits:
                return kind, seq, culprits
    return "none", 0, []
