"""18.5 Find the slow link (20 min, ●●●○○)

- Which pairs can a rank time by itself? And in which order can all ranks time their pairs without a
  deadlock?
- Time your pairs in the order of the peers' numbers, each about ten times. Leave out the first timing, and
  take the median of the others. Then give all ranks all medians: `dist.all_gather_object` needs one line.
- slow = [pair for pair, seconds in medians.items() if seconds > 3 * min(medians.values())]. No pair:
  ("healthy", []). One pair: ("link", that pair). All pairs that contain rank r: ("rank", [r]).
"""

from collections.abc import Sequence
from typing import Any

from helpers.checks.author import *
from helpers.exercises.nb18_torchrun.in_ranks.round_trips import run_with_round_trips

MAX_TRIPS = 30
FEW_TRIPS = 4
"""With fewer round trips, one that is far too long may decide."""
HEALTHY_SPREAD, SLOW_FACTORS = 1.6, (5.0, 12.0)
"""How much longer than the fastest pair a healthy one takes at most, and a slow one."""
KINDS = ("healthy", "link", "rank", "rank")

Pair = tuple[int, int]


def case(draw: Draw) -> Case:
    n = draw.ranks
    kind = draw.of(*KINDS) if n == 3 else draw.of("link across", *KINDS)
    pairs = [(a, b) for a in range(n) for b in range(a + 1, n)]
    fastest = draw.rng.uniform(0.0002, 0.005)
    times = {pair: fastest * draw.rng.uniform(1, HEALTHY_SPREAD) for pair in pairs}
    culprits: list[int] = []
    if kind == "link across":
        # a link between ranks that are not neighbors in a ring
        kind, culprits = "link", list(draw.of((0, 2), (1, 3)))
    elif kind == "link":
        culprits = list(draw.rng.choice(pairs))
    elif kind == "rank":
        culprits = [draw.rank()]
    slow = [pair for pair in pairs if is_slow(kind, culprits, pair)]
    for pair in slow:
        times[pair] = fastest * draw.rng.uniform(*SLOW_FACTORS)
    seed = draw.rng.randrange(10**6)
    by_rank = [
        {peer: times[min(r, peer), max(r, peer)] for peer in range(n) if peer != r}
        for r in range(n)
    ]
    where = {"link": "between ranks", "rank": "at rank", "healthy": "nowhere"}[kind]
    label = f"slow {where} {' and '.join(map(str, culprits))}".strip()

    return Case(
        label,
        [(mine, seed) for mine in by_rank],
        right=lambda got, rank: find_problem(kind, culprits, got["found"], got["trips"]),
        facts={"culprits": culprits},
        shown=f"round_trip, with {plural(len(pairs), 'pair')}",
    )


def is_slow(kind: str, culprits: Sequence[int], pair: Pair) -> bool:
    """Return whether a pair is slow: the link's own, or each one of the slow rank."""
    if kind == "link":
        return set(pair) == set(culprits)
    return kind == "rank" and culprits[0] in pair


def find_problem(
    kind: str, culprits: list[int], got: Any, trips: dict[int, int]
) -> Finding | str | None:
    """Return the first problem of what one rank returned, in the order form, number of trips, value."""
    wanted = 'Return ("healthy", []), ("link", [a, b]) or ("rank", [r]), on every rank.'
    if got is None:
        return Finding("it returns nothing", wanted)
    if not isinstance(got, (tuple, list)) or len(got) != 2:
        return Finding(f"what comes back is not two things but {got!r:.60}", wanted)
    name, ranks = got
    if name not in KINDS or not isinstance(ranks, (list, tuple)) or not all_ints(ranks):
        return Finding(f"what comes back is {got!r:.60}", wanted)
    most = max(trips, key=lambda peer: trips[peer])
    if trips[most] > MAX_TRIPS:
        return (
            f"it makes {trips[most]} round trips with rank {most}; at most {MAX_TRIPS} are allowed"
        )
    if name == kind and list(ranks) == culprits:
        return None
    truth = describe(kind, culprits)
    said = f'it returns ("{name}", {list(ranks)}), but {truth}'
    if name == kind == "link" and set(ranks) == set(culprits):
        return Finding(said, "List the smaller rank first.")
    return Finding(said, explain(kind, culprits, name, list(ranks), trips))


def all_ints(ranks: Sequence[Any]) -> bool:
    return all(isinstance(r, int) for r in ranks)


def describe(kind: str, culprits: list[int]) -> str:
    if kind == "healthy":
        return "no pair is slow"
    if kind == "link":
        return f"only the link between ranks {culprits[0]} and {culprits[1]} is slow"
    return f"all links of rank {culprits[0]} are slow, and no others"


def explain(
    kind: str, culprits: list[int], name: str, ranks: list[Any], trips: dict[int, int]
) -> tuple[str, ...]:
    """Return advice that is true of this rank's trips and of the difference."""
    fewest = min(trips.values(), default=0)
    told = []
    if fewest == 0:
        peer = min(trips, key=lambda p: trips[p])
        told.append(f"It has made no round trip with rank {peer}: time all pairs.")
    elif fewest < FEW_TRIPS:
        told.append(
            f"It has made {plural(fewest, 'round trip')} with some rank. The first is too long, and now "
            "and then another one: make about ten, leave out the first, and take the median."
        )
    elif kind == "rank" and name == "link" and culprits[0] in ranks:
        told.append("Look at all slow pairs, not only at the slowest: they share one rank.")
    elif kind == "link" and name == "rank" and ranks and ranks[0] in culprits:
        told.append("A rank is slow only if each of its pairs is.")
    elif name == "healthy":
        told.append(
            "Compare with the fastest of all pairs, of all ranks: a rank whose card is slow sees only slow "
            "pairs."
        )
    return tuple(told)


EXERCISE = Exercise(
    case,
    kind=Kind.MODULE,
    driver=run_with_round_trips,
    sizes=(3, 4),
    count=14,
    reported=("trips",),
)
