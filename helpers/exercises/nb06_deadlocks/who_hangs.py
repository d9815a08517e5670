"""6.5 Find the rank that hangs, from flight records (25 min, ●●●●○, further)

- Make a table first: for each collective_seq_id, what did each rank call, and with which sizes? For example,
  use a dict from seq to (name, sizes) for each rank.
- Go through the seq ids in rising order, from the first id that every dump still has. If a rank has no entry
  for an id, the answer is 'missing'. If the names differ, the answer is 'op'. If the sizes differ, the answer
  is 'size'.
- The culprits of 'missing' are the ranks without that seq. For 'op' and 'size', count the values by using
  collections.Counter. The most common value is right, and a rank with a different value is a culprit. Start
  at max(min(table) for table in tables), and end at the largest seq of all.
"""

from helpers.checks.author import *
from helpers.exercises.nb06_deadlocks.shared import (
    Table,
    delete_oldest,
    draw_tables,
    make_dump,
    read_dumps,
)


def case(draw: Draw) -> Case:
    kind, n = draw.of("missing", "missing", "op", "op", "size", "none"), draw.of(3, 4, 5, 6)
    draw.ranks = n  # ranks of the job that wrote the dumps, which a single process reads
    fault, lost = (
        draw.whole(3, 9),
        draw.of("none is lost", "old ones are lost", "old ones are lost"),
    )
    most = n - 1 if kind == "missing" else (n - 1) // 2
    culprits = sorted(draw.rng.sample(range(n), draw.whole(1, most))) if kind != "none" else []
    if culprits and draw.rng.random() < 0.3:
        culprits = sorted({0, *culprits[1:]})
    tables = draw_tables(draw, kind, fault, culprits)
    if lost == "old ones are lost":
        for table in tables:
            delete_oldest(draw, table, fault - 1)
        first = max(map(min, tables))
        early = [table for table in tables if min(table) < first]
        # calls that cannot be judged because they are missing from a dump
        if early and draw.rng.random() < 0.5:
            seq = min(early[0])
            early[0][seq] = ("all_reduce", [11])
    right = read_dumps(tables)
    wanted = (kind, fault if culprits else 0, culprits)
    assert right == wanted, (right, wanted)
    return Case(
        f"dumps of {n} ranks, {kind}, {lost}"
        if culprits
        else f"dumps of {n} ranks, all is well, {lost}",
        [([make_dump(table, n, fault) for table in tables],)],
        right=right,
        shown=f"at number {right[1]}: {describe_calls(tables, right[1])}"
        if culprits
        else "dumps without a fault",
    )


def describe_calls(tables: list[Table], seq: int) -> str:
    """Describe each rank's call at a number."""
    made = [" ".join(map(str, table[seq])) if seq in table else "nothing" for table in tables]
    return ", ".join(f"rank {rank} {what}" for rank, what in enumerate(made))


EXERCISE = Exercise(case, kind=Kind.JUDGEMENT, sizes=(1,))
