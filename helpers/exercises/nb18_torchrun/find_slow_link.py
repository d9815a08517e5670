"""18.5 Find the slow link (20 min, ●●●○○)

- Which pairs can a rank time by itself? And in which order can the ranks time all pairs without a deadlock?
- Time your pairs in the order of the peers' numbers, each about ten times. Leave out the first timing, and
  take the median of the others. Then exchange all medians, which takes only one line with
  `dist.all_gather_object`.
- slow = [pair for pair, seconds in medians.items() if seconds > 3 * min(medians.values())]. If there is no
  slow pair, return ("healthy", []). If there is one, return ("link", that pair). If the slow pairs are all
  the pairs of rank r, return ("rank", [r]).
"""

from collections.abc import Sequence
from functools import partial
from typing import Any

from helpers.checks.author import *
from helpers.exercises.nb18_torchrun.in_ranks.round_trips import TRIP_TAG, run_with_round_trips

MAX_TRIPS = 30
HEALTHY_SPREAD, LARGEST_HEALTHY = 1.6, 1.65
"""Largest times of healthy pairs relative to the fastest: for all pairs but one, and for that pair."""
SLOW_FACTORS, FASTEST_SLOW = (5.15, 12.0), (5.15, 5.6)
"""The ranges of slow pairs' times, and of one pair's times. Even with errors, the text's 1.7 and 5 hold."""
KINDS = ("healthy", "link", "rank", "rank")
WARM_UPS, OUTLIERS = (8.0, 800.0), (40.0, 4000.0)
"""Factors, two choices each, by which a pair's first and one or two of its next ten timings are too long."""
FAST_NETWORK, SLOW_NETWORK = (0.0002, 0.0004), (0.021, 0.03)
"""Seconds of the fastest pair in two networks, so different that no limit in seconds fits both."""
MILLISECOND = (0.00065, 0.00095)
"""Seconds of the fastest pair in some healthy cases, in which the longest takes more than a millisecond."""

Pair = tuple[int, int]


def case(draw: Draw) -> Case:
    n = draw.ranks
    kind = draw.of(*KINDS) if n == 3 else draw.of("link across", *KINDS)
    pairs = [(a, b) for a in range(n) for b in range(a + 1, n)]
    culprits: list[int] = []
    if kind == "link across":
        # a link between ranks that are not neighbors in a ring
        kind, culprits = "link", list(draw.of((0, 2), (1, 3)))
    elif kind == "link":
        culprits = list(draw.rng.choice(pairs))
    elif kind == "rank":
        culprits = [draw.rank()]
    plans = draw_plans(draw, kind, pairs, [p for p in pairs if is_slow(kind, culprits, p)])
    where = {"link": "between ranks", "rank": "at rank", "healthy": "nowhere"}[kind]
    label = f"slow {where} {' and '.join(map(str, culprits))}".strip()

    return Case(
        label,
        [({p: plans[min(r, p), max(r, p)] for p in range(n) if p != r},) for r in range(n)],
        right=AllRanks(find_wrong_form, partial(find_wrong_result, kind, culprits)),
        facts={"culprits": culprits},
        shown=f"round_trip, with {plural(len(pairs), 'pair')}",
    )


def draw_plans(
    draw: Draw, kind: str, pairs: Sequence[Pair], slow: Sequence[Pair]
) -> dict[Pair, tuple[Any, ...]]:
    """Return the arguments of each pair's stopwatch. The fastest pair is healthy."""
    rng = draw.rng
    network = draw.of(MILLISECOND if kind == "healthy" else FAST_NETWORK, SLOW_NETWORK)
    healthy = [pair for pair in pairs if pair not in slow]
    rng.shuffle(healthy)
    factors = {pair: rng.uniform(1, HEALTHY_SPREAD) for pair in healthy}
    factors |= {pair: rng.uniform(*SLOW_FACTORS) for pair in slow}
    # assign in this order, because a single healthy pair must be the fastest
    factors[healthy[-1]] = LARGEST_HEALTHY
    factors[healthy[0]] = 1.0
    if slow:
        factors[rng.choice(slow)] = rng.uniform(*FASTEST_SLOW)
    errors = {
        pair: (rng.choice(WARM_UPS), rng.choice(OUTLIERS), rng.randint(1, 5)) for pair in pairs
    }
    # the fastest pair misleads a first timing, a second timing and a mean; the other pair, a low limit
    errors[healthy[0]] = (WARM_UPS[1], OUTLIERS[1], 1)
    if len(healthy) > 1:
        errors[healthy[-1]] = (WARM_UPS[0], OUTLIERS[0], rng.randint(3, 5))
    fastest = rng.uniform(*network)
    return {pair: (fastest * factors[pair], rng.randrange(10**6), *errors[pair]) for pair in pairs}


def is_slow(kind: str, culprits: Sequence[int], pair: Pair) -> bool:
    """Return whether a pair is slow: the slow link's pair, or any pair of the slow rank."""
    if kind == "link":
        return set(pair) == set(culprits)
    return kind == "rank" and culprits[0] in pair


# --- results --------------------------------------------------------------------------------------

WANTED = 'Return ("healthy", []), ("link", [a, b]) or ("rank", [r]), on every rank.'


def find_wrong_form(got: Any) -> Finding | None:
    """Return a finding if one rank's result has the wrong form, or if the rank has read a clock."""
    clock = (
        "Your function reads a clock. Use the seconds returned by `round_trip` instead, because the check "
        "simulates them."
    )
    found, clocks = got["found"], (clock,) if got["clock"] else ()
    if found is None:
        return Finding("it returns nothing", (*clocks, WANTED))
    if not isinstance(found, (tuple, list)) or len(found) != 2:
        return Finding(f"it returns {found!r:.60} instead of two values", (*clocks, WANTED))
    name, ranks = found
    if name not in KINDS or not isinstance(ranks, (list, tuple)) or not all_ints(ranks):
        what = f"it returns {found!r:.60}, not a kind and a list of ranks"
        return Finding(what, (*clocks, WANTED))
    return Finding("it reads a clock", clock) if clocks else None


def find_wrong_result(kind: str, culprits: list[int], values: list[Any]) -> Finding | None:
    """Return a finding if the ranks' results, all of the right form, are wrong."""
    results = [(value["found"][0], list(value["found"][1])) for value in values]
    right = (kind, culprits)
    if all(result == right for result in results):
        return None
    truth = describe(kind, culprits)
    first, *others = results
    if any(other != first for other in others):
        told = "; ".join(f"rank {r} returns {write(each)}" for r, each in enumerate(results))
        return Finding(f"{told}; but {truth}", explain_disagreement(right, results))
    name, ranks = first
    said = f"all ranks return {write(first)}, but {truth}"
    if is_one_rank_twice(name, ranks):
        said = f"all ranks return {write(first)}, but {ranks} is one rank, and {truth}"
    return Finding(said, explain(kind, culprits, name, ranks))


def explain_disagreement(
    right: tuple[str, list[int]], results: Sequence[tuple[str, list[int]]]
) -> tuple[str, ...]:
    """Return true advice on results that differ between ranks."""
    if all(name == "link" and set(ranks) == set(right[1]) for name, ranks in results):
        return ("List the smaller rank first, on every rank.",)
    healthy: tuple[str, list[int]] = ("healthy", [])
    if results[0] == right and all(other == healthy for other in results[1:]):
        return (
            'Rank 0 is right, but the others return ("healthy", []). Send the verdict to all ranks.',
        )
    if all(not ranks or r in ranks for r, (_, ranks) in enumerate(results)):
        return (
            "The ranks return different results, as if each had judged only its pairs. Send the times to "
            "all ranks.",
        )
    return ("The ranks return different results. Let them all decide from the same times.",)


def explain(kind: str, culprits: list[int], name: str, ranks: list[int]) -> tuple[str, ...]:
    """Return true advice on a wrong result returned by all ranks."""
    if name == kind == "link" and set(ranks) == set(culprits):
        return ("List the smaller rank first.",)
    if is_one_rank_twice(name, ranks):
        return ('A link has two different ranks. A slow rank is ("rank", [r]).',)
    if name == "rank" and len(ranks) != 1:
        return ("Return only one slow rank: the one that is in all slow pairs.",)
    if name == "link" and len(ranks) != 2:
        return ("A link joins exactly two ranks.",)
    if kind == "link" and name == "rank" and ranks[0] in culprits:
        return ("A rank is slow only if all its pairs are slow.",)
    return ()


def is_one_rank_twice(name: str, ranks: list[int]) -> bool:
    return name == "link" and len(ranks) == 2 and ranks[0] == ranks[1]


def write(result: tuple[str, list[int]]) -> str:
    return f'("{result[0]}", {result[1]})'


def all_ints(ranks: Sequence[Any]) -> bool:
    return all(isinstance(r, int) for r in ranks)


def describe(kind: str, culprits: list[int]) -> str:
    if kind == "healthy":
        return "no pair is slow"
    if kind == "link":
        return f"only the link between ranks {culprits[0]} and {culprits[1]} is slow"
    return f"all links of rank {culprits[0]} are slow, and no others"


# --- round trips ----------------------------------------------------------------------------------


def count_trips(trace: Trace) -> dict[Pair, int]:
    """Return the number of each rank's calls of `round_trip` with each peer, including the last call."""
    trips = {(r, p): 0 for r in trace.ranks for p in trace.ranks if p != r}
    for event in trace.events:
        # the smaller rank begins with its send, the larger one with its recv
        peer = event.peer
        if event.tag != TRIP_TAG or peer is None or (event.rank, peer) not in trips:
            continue
        if event.op == ("send" if event.rank < peer else "recv"):
            trips[event.rank, peer] += 1
    return trips


def find_too_many_trips(trace: Trace, case: Case) -> str:
    trips = count_trips(trace)
    (rank, peer), most = max(trips.items(), key=lambda item: item[1])
    if most <= MAX_TRIPS:
        return ""
    return f"ranks {rank} and {peer} make {most} round trips; at most {MAX_TRIPS} are allowed"


def find_missing_pair(trace: Trace, case: Case) -> str:
    missing = [
        f"{r} and {p}" for (r, p), trips in count_trips(trace).items() if not trips and r < p
    ]
    return (
        f"no round trip is made between ranks {', nor between '.join(missing)}" if missing else ""
    )


def find_unequal_trips(trace: Trace, case: Case) -> str:
    """Return the ranks of a pair with different numbers of calls, and the ranks that may be the cause."""
    trips = count_trips(trace)
    unequal = [(r, p) for (r, p), own in trips.items() if own > trips[p, r]]
    if not unequal:
        return ""
    # a pair in which both ranks called shows more than a rank waiting for its first call
    rank, peer = next((pair for pair in unequal if trips[pair[::-1]]), unequal[0])
    own, other = trips[rank, peer], trips[peer, rank]
    if not other:
        return f"rank {rank} calls round_trip({peer}), but rank {peer} has not called round_trip({rank})"
    said = (
        f"rank {rank} has called round_trip({peer}) {times(own)}, but rank {peer} has called "
        f"round_trip({rank}) {times(other)}"
    )
    twice = [pair for pair in trips if pair[0] < pair[1] and trips[pair] >= 2 * other > 2]
    if not twice:
        return said
    a, b = twice[0]
    third = ", ".join(str(r) for r in trace.ranks if r not in twice[0])
    return (
        f"{said}; ranks {a} and {b} have made {trips[twice[0]]} round trips: are they also calling it for "
        f"pairs of rank {third}, to which only one of them belongs?"
    )


def times(count: int) -> str:
    return "once" if count == 1 else f"{count} times"


ORDERS_MEET = (
    "Both ranks of a pair call `round_trip` the same number of times, in an order that can't "
    "deadlock."
)

EXERCISE = Exercise(
    case,
    kind=Kind.MODULE,
    driver=run_with_round_trips,
    sizes=(3, 4),
    count=14,
    rules=(
        Predicate(find_too_many_trips, "At most 30 round trips with each peer."),
        Predicate(find_missing_pair, "All pairs are timed."),
        Predicate(find_unequal_trips, ORDERS_MEET, on_each_call=True),
    ),
    failed=(
        CrashAdvice(
            r"the other ranks are",
            "Pass a different rank's number to `round_trip`: 0 to world_size - 1, except this rank's.",
        ),
        HangAdvice(
            "Both ranks of a pair must call `round_trip` the same number of times, in an order of "
            "pairs that can't deadlock: for example, let each rank go through its peers from 0 up.",
            when=lambda case, run: bool(find_unequal_trips(run.trace, case)),
        ),
    ),
    reported=("clock",),
)
