"""3.2 Safe buffers (15 min, ●●●○○)

- Message 2 goes into the buffer of message 0. When may you fill that buffer?
- Use the buffers in turn: message i goes into buffer `i % 2`. Keep the work of each message. Before filling a
  buffer, wait for the last message that was sent from it.
- works = []; for i in range(count): if i >= 2: works[i - 2].wait(); fill(buffers[i % 2], i);
  works.append(dist.isend(buffers[i % 2], dst)). After the loop: for work in works[-2:]: work.wait().
"""

from typing import Any

import torch

from helpers.checks.author import *
from helpers.checks.rules_transfers import EachIsWaitedFor
from helpers.exercises.nb03_nonblocking_p2p.in_ranks import FILL, run_fill_and_send
from helpers.exercises.nb03_nonblocking_p2p.shared import SIZES


def case(draw: Draw) -> Case:
    n, dst = draw.ranks, draw.rank()
    count, length = draw.of(1, 2, 3, 4, 5, 8), draw.of(1, 2, 3, 7)
    tables = [draw.tensor((count, length), torch.float32) for _ in range(n)]
    came = {src: tables[src] for src in range(n) if src != dst}
    return Case(
        f"{plural(count, 'message')} of {length} to rank {dst}",
        [(dst, tables[rank]) for rank in range(n)],
        right=PerRank([came if rank == dst else judge_buffer_count for rank in range(n)]),
        facts={"dst": dst, "count": count},
        tolerance=0,
        shown=f"fill, count={count}, length={length}, dst={dst}",
    )


def judge_buffer_count(got: Any, rank: int) -> Finding | None:
    if type(got) is not int:
        return Finding("the number of filled or sent buffers is unknown")
    if 1 <= got <= 2:
        return None
    return Finding(f"you fill or send {got} tensors; two are enough")


def message_count(case: Case, rank: int) -> int:
    return 0 if rank == case.facts["dst"] else int(case.facts["count"])


def find_missing_overlap(trace: Trace, case: Case) -> str:
    for rank in range(case.world_size):
        sends = [event for event in trace.of(rank) if event.op == "send"]
        fills = {event.call: event for event in trace.of(rank) if event.op == "span"}
        for index, send in enumerate(sends[: max(message_count(case, rank) - 1, 0)]):
            fill = fills.get(f"{FILL} {index + 1}")
            if fill is None:
                return f"rank {rank} never fills message {index + 1}."
            if send.start_ns > fill.start_ns:
                return (
                    f"rank {rank} fills message {index + 1} before issuing message {index}; issue each "
                    "message as soon as its buffer is full."
                )
            if not send.asynchronous or (send.wait_ns or fill.start_ns) < fill.start_ns:
                return (
                    f"rank {rank} waits for message {index}{at(send)} before filling message {index + 1}, "
                    f"so it idles; fill the other buffer while message {index} is in flight."
                )
    return ""


EXERCISE = Exercise(
    case,
    (
        OnlyCalls(("send", "recv")),
        Calls("send", message_count),
        Peers(lambda case, rank: (case.facts["dst"],), "every message goes to rank `dst`"),
        Predicate(find_missing_overlap, "one buffer is filled while the other is in flight"),
        EachIsWaitedFor(),
    ),
    kind=Kind.MODULE,
    driver=run_fill_and_send,
    sizes=SIZES,
)
