"""6.5 Who hangs? (25 min, ●●●●○, further)

- Make a table first: for each collective_seq_id, what did each rank call, with which sizes? A dict from seq
  to (name, sizes) for each rank will do.
- Go through the seq ids in rising order, from the first that every dump still has. At the first one that not
  all ranks have: missing. Where names differ: op. Where sizes differ: size.
- The culprits of 'missing' are the ranks without that seq. For 'op' and 'size' count the values with
  collections.Counter: the most common one is right, who has another is a culprit. Start at max(min(table)
  for table in tables), end at the largest seq of all.
"""

from helpers.checks.author import *
from helpers.exercises.nb06_deadlocks.shared import (
    Answer,
    Table,
    dump_of,
    forget,
    read_dumps,
    tables_of,
    unlike_rank_0,
)


def case(draw: Draw) -> Case:
    kind, n = draw.of("missing", "missing", "op", "op", "size", "none"), draw.of(3, 4, 5, 6)
    draw.ranks = n  # of the job that the dumps come from; one process reads them
    fault, lost = (
        draw.whole(3, 9),
        draw.of("none is lost", "old ones are lost", "old ones are lost"),
    )
    most = n - 1 if kind == "missing" else (n - 1) // 2
    culprits = sorted(draw.rng.sample(range(n), draw.whole(1, most))) if kind != "none" else []
    if culprits and draw.rng.random() < 0.3:
        culprits = sorted({0, *culprits[1:]})
    tables = tables_of(draw, kind, fault, culprits)
    if lost == "old ones are lost":
        for table in tables:
            forget(draw, table, fault - 1)
        first = max(map(min, tables))
        early = [table for table in tables if min(table) < first]
        if early and draw.rng.random() < 0.5:  # what cannot be judged
            seq = min(early[0])
            early[0][seq] = ("all_reduce", [11])
    right = read_dumps(tables)
    wanted = (kind, fault if culprits else 0, culprits)
    assert right == wanted, (right, wanted)
    every = sorted({seq for table in tables for seq in table})
    missing = read_dumps(tables, order=("missing",))
    others = [rank for rank in range(n) if rank not in culprits]
    waiting = [
        Mistake(
            ("missing", fault, others),
            "These are the ranks that wait. Name those for which they wait.",
        )
    ]
    return Case(
        f"dumps of {n} ranks, {kind}, {lost}"
        if culprits
        else f"dumps of {n} ranks, all is well, {lost}",
        [([dump_of(table, n, fault) for table in tables],)],
        right=right,
        mistakes=[
            Mistake(read_dumps(tables, every), FORGETS),
            Mistake(read_dumps(tables, range(1, every[-1] + 1)), FORGETS),
            *(waiting if kind == "missing" else []),
            Mistake(read_dumps(tables, odd=unlike_rank_0), RANK_0),
            Mistake(
                (kind, fault, others),
                "These are the ranks that agree; name those who differ from them.",
            ),
            Mistake(
                (kind, fault, culprits[:1]), "There may be several culprits: name all of them."
            ),
            Mistake(missing if missing[1] else right, NOT_ALL_AT_ONCE),
            Mistake(
                missing,
                "Ranks may also call another op, or hand in another size: ask for those, too.",
            ),
            Mistake(read_dumps(tables, every[::-1]), LAST),
            Mistake(read_dumps(tables, range(max(map(min, tables)), every[-1] + 1)[::-1]), LAST),
            Mistake(
                read_dumps(tables, order=("missing", "size", "op")),
                "At one number ask for the op before the size.",
            ),
            Mistake(by_place(tables), PLACES),
            Mistake(lambda got, rank: not isinstance(got, (tuple, list)) or len(got) != 3, THREE),
            Mistake(("none", 0, []), "Something is wrong in these dumps."),
        ],
        shown=f"at number {right[1]}: {at(tables, right[1])}"
        if culprits
        else "dumps without a fault",
    )


FORGETS = (
    "A ring buffer forgets its oldest entries. A rank whose dump begins later did not miss them: begin at "
    "the first number that every dump still has."
)
LAST = "This goes through the numbers from the last one; the first collective that goes wrong is wanted."
NOT_ALL_AT_ONCE = "At each number ask all three questions before you go on to the next."
RANK_0 = "Rank 0 may be a culprit as well: what most ranks have is right."
PLACES = "collective_seq_id numbers the entries, not their place in the list."
THREE = "Return three things: the kind, the collective_seq_id, the list of ranks."


def at(tables: list[Table], seq: int) -> str:
    """Say what each rank has at a number."""
    made = [" ".join(map(str, table[seq])) if seq in table else "nothing" for table in tables]
    return ", ".join(f"rank {rank} {what}" for rank, what in enumerate(made))


def by_place(tables: list[Table]) -> Answer:
    """Give the answer of who compares the lists place by place."""
    places = [dict(enumerate(table.values())) for table in tables]
    kind, place, culprits = read_dumps(places)
    if kind == "none":
        return "none", 0, []
    return kind, next(list(t)[place] for t in tables if len(t) > place), culprits


EXERCISE = Exercise(case, kind=Kind.JUDGEMENT, sizes=(1,))
