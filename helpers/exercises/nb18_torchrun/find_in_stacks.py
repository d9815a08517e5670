"""18.4 Which rank is to blame? (10 min, ●●○○○, further)

- Find the paragraph of the main thread in each text. Which of its frames are torch's, and which are the
  program's own?
- Make a list of (file, line, function) for each rank. A rank waits if one of its files is
  distributed_c10d.py. If all ranks wait, compare all frames of train.py, not only the first one: a function
  may have several callers.
- frames = re.findall(r'File "(.+)", line ([0-9]+) in (.+)', text.rpartition("Current thread")[2]). own =
  [frame for frame in frames if frame[0] == "train.py"]. The most frequent of these lists belongs to the
  ranks that wait. Its first line is the line; the last function in distributed_c10d.py is the call.
"""

from typing import Any

from helpers.checks.author import *
from helpers.exercises.nb18_torchrun.shared import READER, STACKS, stack_of


def case(draw: Draw) -> Case:
    n, what = draw.of(4, 5, 6, 7, 8), draw.of(*STACKS)
    blamed, waiting, *elsewhere = STACKS[what]
    rank = {4: draw.of(*range(4)), 5: draw.of(*range(5))}.get(n, draw.of(*range(6)))
    mains = [waiting] * n
    mains[rank] = blamed
    for frames in elsewhere:
        mains[(rank + draw.of(1, n - 1)) % n] = frames
    *_, call = [frame for frame in waiting.split() if frame[0] == "C"]
    line = next(frame for frame in waiting.split() if frame[0] == "T")
    right = (rank, call.partition(":")[2], int(line[1:].partition(":")[0]))
    first = "" if what == "no rendezvous" else stack_of(READER, thread(draw, "Thread")) + "\n"
    stacks = [first + stack_of(main, thread(draw, "Current thread")) for main in mains]

    def judged(got: Any, _: int) -> Finding | None:
        if same(right, got):
            return None
        if not isinstance(got, tuple) or len(got) != 3:
            return Finding(f"{got!r} is not a tuple (rank, call, line)")
        named = zip(("rank", "call", "line"), right, got, strict=True)
        wrong = [
            f"{name} {said!r} is not {wanted!r}" for name, wanted, said in named if said != wanted
        ]
        return Finding(", ".join(wrong))

    told = [f"{frame[1:].partition(':')[2]}" for frame in (blamed.split()[0], waiting.split()[0])]
    return Case(
        f"{n} ranks, {what}",
        [(stacks,)],
        right=judged,
        shown=f"the stacks of {n} ranks: rank {rank} is in {told[0]}, most of the others in {told[1]}",
    )


def thread(draw: Draw, name: str) -> str:
    return f"{name} 0x00007f{draw.rng.randrange(16**8):08x}c0"


EXERCISE = Exercise(case, kind=Kind.JUDGEMENT, sizes=(1,), count=36)
