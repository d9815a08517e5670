# %% right: tables by number
def who_hangs(dumps):
    tables = [{e["collective_seq_id"]: e for e in dump["entries"]} for dump in dumps]
    first, last = max(min(table) for table in tables), max(max(table) for table in tables)
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


# %% right: all numbers that occur, and Counter
from collections import Counter


def odd_ones(values):
    common = Counter(values).most_common(1)[0][0]
    return sorted(r for r, v in values_of(values) if v != common)


def values_of(values):
    return enumerate(values)


def who_hangs(dumps):
    by_rank = []
    for dump in dumps:
        by_rank.append(
            {
                e["collective_seq_id"]: (e["profiling_name"], tuple(e["input_sizes"][0]))
                for e in dump["entries"]
            }
        )
    start = max(min(d) for d in by_rank)
    for seq in sorted({s for d in by_rank for s in d if s >= start}):
        have = [d.get(seq) for d in by_rank]
        if None in have:
            return ["missing", seq, [r for r, h in enumerate(have) if h is None]]
        if len({h[0] for h in have}) > 1:
            return ["op", seq, odd_ones([h[0] for h in have])]
        if len({h[1] for h in have}) > 1:
            return ["size", seq, odd_ones([h[1] for h in have])]
    return ["none", 0, []]


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
