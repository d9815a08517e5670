"""6.4 Prepare once, read everywhere (5 min, ●○○○○)

- Which of the three steps does rank 0 alone take, and which does every rank take?
- Only `prepare()` belongs under `if rank == 0`. The barrier comes after it, outside the `if`.
- if rank == 0: prepare(). Then, on every rank: dist.barrier(); return read().
"""

from helpers.checks.author import *
from helpers.exercises.nb06_deadlocks.in_ranks import run_with_file


def case(draw: Draw) -> Case:
    content = draw.of("{} digits", "", "one line\n{} and more\n", "größer {}", "{}", " {} ")
    content = content.format(draw.whole(0, 999))
    name = f"file {draw.whole(0, 1 << 40)}"
    return Case(
        f"the file holds {content!r}",
        [(name, content if rank == 0 else None) for rank in range(draw.ranks)],
        right=content,
        shown="prepare, read",
    )


def find_wrong_preparation(trace: Trace, case: Case) -> str:
    prepared = [event.rank for event in trace.spans if event.call == "prepare"]
    if prepared != [0]:
        who = f"by {plural_ranks(prepared)}" if prepared else "by no rank"
        return f"the data is prepared {who}; only rank 0 should prepare it, once."
    for rank in range(case.world_size):
        reads = sum(e.call == "read" for e in trace.spans.of(rank))
        if reads != 1:
            return f"rank {rank} reads {plural(reads, 'time')}; expected: once."
    return ""


def plural_ranks(ranks: list[int]) -> str:
    return f"rank{'s' * (len(ranks) > 1)} {', '.join(map(str, ranks))}"


def find_wrong_order(trace: Trace, case: Case) -> str:
    """Return the rank that calls no barrier between preparing and reading."""
    for rank in range(case.world_size):
        events = trace.of(rank)
        for barrier in (event for event in events if event.op == "barrier"):
            if barrier.asynchronous and barrier.wait_ns is None:
                return f"rank {rank} starts a barrier with async_op=True and never waits for it."
            passed = barrier.end_ns or barrier.start_ns
            for event in events:
                if event.call == "prepare" and event.start_ns > barrier.start_ns:
                    return f"rank {rank} calls the barrier before preparing: call prepare() first."
                if event.call == "read" and event.start_ns < max(passed, barrier.wait_ns or 0):
                    return f"rank {rank} calls read() before passing the barrier."
    return ""


EXERCISE = Exercise(
    case,
    (
        OnlyCalls(("barrier",)),
        Calls("barrier", 1),
        Predicate(find_wrong_preparation, "rank 0 prepares once, every rank reads once"),
        Predicate(find_wrong_order, "first prepare, then the barrier, then read"),
    ),
    kind=Kind.MODULE,
    driver=run_with_file,
)
