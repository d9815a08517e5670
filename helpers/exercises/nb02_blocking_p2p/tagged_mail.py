"""2.4 Tagged mail (20 min, ●●●○○, further)

- Rank 0 cannot make a buffer before knowing the letter's length.
- First send the length, as a tensor of one int64, with tag 1. Then send the letter with tag 2. Rank 0
  receives both from the same rank, the length first.
- Rank 0, for each source: `n = torch.zeros(1, dtype=torch.int64)`; recv n with tag 1; `letter =
  torch.empty(n.item())`; recv letter with tag 2; append it to the list.
"""

import torch

from helpers.checks.author import *
from helpers.exercises.nb02_blocking_p2p.in_ranks import run_after_previous_case
from helpers.exercises.nb02_blocking_p2p.shared import SIZES, TRANSFERS

LETTER_PARTS = {1: "the length (one int64)", 2: "the letter (float32)"}


def case(draw: Draw) -> Case:
    n = draw.ranks
    lengths = [draw.of(0, 1, 2, 3, 5, 8, 13, 140, 300) for _ in range(n - 1)]
    letters = [draw.tensor((length,), torch.float32) for length in lengths]
    return Case(
        f"letters of length {', '.join(map(str, lengths))}",
        [(torch.empty(0),), *[(letter,) for letter in letters]],
        right=PerRank([letters, *[None] * (n - 1)]),
        facts={"lengths": [0, *lengths]},
        tolerance=0,
    )


def find_wrong_tag(trace: Trace, case: Case) -> str:
    for event in trace.calls:
        if event.op == "send" and event.tag not in LETTER_PARTS:
            return (
                f"rank {event.rank} sends with tag {event.tag}{at(event)}; send a length with tag 1 and a "
                "letter with tag 2."
            )
    for rank in range(1, case.world_size):
        sends = {event.tag: event for event in trace.of(rank) if event.op == "send"}
        wanted = {1: (8, "int64"), 2: (4 * case.facts["lengths"][rank], "float32")}
        for tag, (nbytes, dtype) in wanted.items():
            if tag not in sends:
                return (
                    f"rank {rank} sends nothing with tag {tag}, which is for {LETTER_PARTS[tag]}."
                )
            if (sends[tag].nbytes, sends[tag].dtype) != (nbytes, dtype):
                return (
                    f"rank {rank} sends {sends[tag].nbytes} bytes of {sends[tag].dtype} with tag {tag}; "
                    f"this tag is for {LETTER_PARTS[tag]}, which has {nbytes} bytes."
                )
    return ""


EXERCISE = Exercise(
    case,
    (
        *TRANSFERS,
        Predicate(find_wrong_tag, "lengths have tag 1, letters have tag 2"),
        Calls("send", lambda case, rank: 2 if rank else 0),
        Calls("recv", lambda case, rank: 0 if rank else 2 * (case.world_size - 1)),
    ),
    kind=Kind.MODULE,
    driver=run_after_previous_case,
    sizes=SIZES,
)
