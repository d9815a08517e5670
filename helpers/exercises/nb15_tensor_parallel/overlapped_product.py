"""15.8 An overlapped product (15 min, ●●●○○, further)

- A rank has its own rows from the start. Which rows can be in flight while it is multiplying them?
- Use a ring with world_size rounds. In each round, start sending the current rows to the next rank and
  receiving new rows from the previous rank, multiply the current rows, then wait. In round i, the current
  rows are those of rank (rank - i) % world_size. In the last round, send nothing.
- box = torch.empty_like(rows); works = [dist.isend(rows, (rank + 1) % world_size), dist.irecv(box, (rank - 1)
  % world_size)]; out[owner] = multiply(rows, weight); for work in works: work.wait(); rows = box. At the end,
  return torch.cat(out).
"""

import torch

from helpers.checks.author import *
from helpers.checks.rules_transfers import EachIsWaitedFor, NothingBlocks, transfer_name
from helpers.exercises.nb15_tensor_parallel.in_ranks.cut import MULTIPLY_SPAN, run_product


def case(draw: Draw) -> Case:
    n, rows = draw.ranks, draw.whole(1, 4)
    dtype, generator = draw.dtype(torch.float32, torch.float64), draw.generator()
    whole = torch.randn(n * rows, draw.whole(1, 5), generator=generator, dtype=dtype)
    weights = [
        torch.randn(whole.shape[1], draw.whole(1, 4), generator=generator, dtype=dtype)
        for _ in range(n)
    ]
    blocks, right = whole.chunk(n), [whole @ w for w in weights]
    return Case(
        f"{plural(rows, 'row')} a rank, {whole.shape[1]} features, {dtype}",
        list(zip(blocks, weights, strict=True)),
        right=PerRank(right),
        facts={"messages": n - 1, "bytes": (n - 1) * blocks[0].nbytes},
        scale=(1.0 + largest(whole)) * (1.0 + largest(*weights)) * whole.shape[1],
        shown="x, weight, multiply",
    )  # fmt: skip


def find_wrong_products(trace: Trace, case: Case) -> str:
    """Return the rank that does not multiply block by block."""
    for rank in range(case.world_size):
        made = len(product_spans(trace, rank))
        if made != case.world_size:
            return (
                f"rank {rank} calls {MULTIPLY_SPAN}() {plural(made, 'time')}; expected: {case.world_size}, "
                "once for the rows of each rank."
            )
    return ""


def find_missing_overlap(trace: Trace, case: Case) -> str:
    """Return the product that overlaps no transfer, or the transfer that overlaps no product."""
    for rank in range(case.world_size):
        spans = product_spans(trace, rank)
        transfers = [e for e in trace.of(rank) if e.op in {"send", "recv"} and e.asynchronous]
        for number, span in enumerate(spans[:-1], 1):
            if not any(is_during(span, e) for e in transfers if e.op == "recv"):
                return (
                    f"rank {rank} receives nothing while computing product {number} of {len(spans)}. "
                    "Start the next transfer before a product, and wait for it afterwards."
                )
        for transfer in transfers:
            if not any(is_during(span, transfer) for span in spans):
                return (
                    f"rank {rank} starts its {transfer_name(transfer)}{at(transfer)} and waits for it with "
                    "no product in between. Start it before a product, and wait for it afterwards."
                )
    return ""


def is_during(span: Event, transfer: Event) -> bool:
    """Return whether a transfer began before a span and was waited for after it."""
    ended, waited = span.end_ns, transfer.wait_ns
    return (
        ended is not None
        and transfer.start_ns <= span.start_ns
        and (waited is None or waited >= ended)
    )


def product_spans(trace: Trace, rank: int) -> list[Event]:
    """Return the check's spans of a rank, without a learner's spans of the same name around them."""
    named_so = [e for e in trace.of(rank) if e.op == "span" and e.call == MULTIPLY_SPAN]
    return [e for e in named_so if not any(o is not e and _is_inside(o, e) for o in named_so)]


def _is_inside(inner: Event, outer: Event) -> bool:
    return outer.start_ns <= inner.start_ns and (inner.end_ns or 0) <= (outer.end_ns or 0)


EXERCISE = Exercise(
    case,
    (
        OnlyCalls(("send", "recv")),
        NothingBlocks(),
        EachIsWaitedFor(),
        Calls("send", "messages", why="Each rank's rows reach every other rank once."),
        Calls("recv", "messages"),
        Calls("send", total_bytes="bytes", why="A message holds the rows of one rank."),
        Predicate(find_wrong_products, f"{MULTIPLY_SPAN}() once for the rows of each rank"),
        Predicate(
            find_missing_overlap, "the next rows are in flight during every product but the last"
        ),
    ),
    failed=(
        HangAdvice(
            "Each rank sends to the next one and receives from the previous one, in every round but the last."
        ),
    ),
    kind=Kind.MODULE,
    driver=run_product,
    sizes=(2, 3, 4, 5, 6),
)
