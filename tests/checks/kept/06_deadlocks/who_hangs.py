# %% wrong: places in the list are compared, not numbers | wrong | says: numbers the entries, not their place


# %% wrong: the last number instead of the first | wrong | says: goes through the numbers from the last one


# %% wrong: only missing ranks are looked for | wrong | says: Ranks may also call another op


# %% wrong: rank 0 is taken for right | wrong | says: Rank 0 may be a culprit as well


# %% wrong: it always says the same | wrong | says: Something is wrong in these dumps


# %% wrong: missing ranks are looked for first, over all numbers | wrong | says: At each number ask all three questions


# %% wrong: sizes are compared before ops | wrong | says: ask for the op before the size


# %% right: sets, and a loop with an else
def who_hangs(dumps):
    calls = {}
    for rank, dump in enumerate(dumps):
        for entry in dump["entries"]:
            calls.setdefault(entry["collective_seq_id"], {})[rank] = entry
    begin = max(dump["entries"][0]["collective_seq_id"] for dump in dumps)
    everyone = set(range(len(dumps)))
    for seq in sorted(calls):
        if seq < begin:
            continue
        missing = everyone - set(calls[seq])
        if missing:
            return "missing", seq, sorted(missing)
        for kind, field in [("op", "profiling_name"), ("size", "input_sizes")]:
            groups = {}
            for rank in everyone:
                groups.setdefault(repr(calls[seq][rank][field]), []).append(rank)
            if len(groups) > 1:
                most = max(groups.values(), key=len)
                return kind, seq, sorted(everyone - set(most))
    else:
        return "none", 0, []


# %% wrong: only the first culprit | wrong | says: There may be several culprits
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


# %% wrong: only the number of elements is compared | wrong | says: is not
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
