"""18.4 Which rank is to blame? (10 min, ●●○○○, further)

- Find the paragraph of the main thread in each text. Which of its frames belong to torch, and which belong to
  the program?
- Make a list of (file, line, function) for each rank. A rank is waiting if one of its files is
  distributed_c10d.py. If all ranks are waiting, compare all frames of train.py, not only the first one: a
  function may have several callers.
- frames = re.findall(r'File "(.+)", line ([0-9]+) in (.+)', text.rpartition("Current thread")[2]). own =
  [frame for frame in frames if frame[0] == "train.py"]. The most common of these lists belongs to the
  waiting ranks. `line` is the line of its first frame, and `call` is the last function in
  distributed_c10d.py.
"""

from typing import Any

from helpers.checks.author import *
from helpers.exercises.nb18_torchrun.shared import READER_STACK, STACKS, format_stack

MAIN_THREAD_ADVICE = (
    'You\'ve read a frame of a different thread. Read only the frames below "Current thread".'
)
LAST_FRAME_ADVICE = (
    "The program called a different torch function. `wrapper` surrounds each call, and some functions call "
    "others: for example, `broadcast_object_list` calls `broadcast`. Take the last frame in "
    "distributed_c10d.py."
)
FIRST_FRAME_ADVICE = (
    "`line` should be the line of the first frame of train.py, as a number. The frames below it are its "
    "callers."
)
MOST_RANKS_ADVICE = (
    "You returned the place of the rank to blame. Return the call and the line at which most ranks "
    "wait."
)
RANK_ADVICE = (
    "This rank is not to blame. If one rank's main thread is not in distributed_c10d.py, that rank is to "
    "blame; other ranks may differ, too, because they wait for it. Otherwise compare all frames of train.py, "
    "each with its line, even if all ranks wait in the same function. Whole texts always differ, because "
    "they contain the threads' addresses."
)
HARD_KINDS = ("no batch, and a chain",) * 3 + ("another call of the same function",) * 2
"""Kinds drawn more often than others, because some wrong answers fail in only a few of their cases."""


def case(draw: Draw) -> Case:
    n, what = draw.of(4, 5, 6, 7, 8), draw.of(*STACKS, *HARD_KINDS)
    blamed, waiting, *elsewhere = STACKS[what]
    rank = {4: draw.of(*range(4)), 5: draw.of(*range(5))}.get(n, draw.of(*range(6)))
    mains = [waiting] * n
    mains[rank] = blamed
    for frames in elsewhere:
        mains[(rank + draw.of(1, n - 1)) % n] = frames
    calls = [parse_frame(frame)[0] for frame in waiting.split() if frame[0] == "C"]
    right = (rank, calls[-1], first_line(waiting))
    first = (
        ""
        if what == "no rendezvous"
        else format_stack(READER_STACK, draw_thread_title(draw, "Thread")) + "\n"
    )
    stacks = [
        first + format_stack(main, draw_thread_title(draw, "Current thread")) for main in mains
    ]

    def judge(got: Any, _: int) -> Finding | None:
        if same(right, got):
            return None
        if not isinstance(got, (tuple, list)) or len(got) != 3:
            return Finding(f"{got!r} is not a tuple (rank, call, line)")
        named = list(zip(("rank", "call", "line"), right, got, strict=True))
        wrong = [
            f"{name} {said!r} is not {wanted!r}" for name, wanted, said in named if said != wanted
        ]
        who, call, line = got
        other = {part for frame in READER_STACK.split() for part in parse_frame(frame)}
        waits = {part for frame in waiting.split() for part in parse_frame(frame)}
        advice = {
            MAIN_THREAD_ADVICE: call in other or line in other,
            LAST_FRAME_ADVICE: call != right[1] and call in waits,
            FIRST_FRAME_ADVICE: line != right[2] and (isinstance(line, str) or line in waits),
            MOST_RANKS_ADVICE: line == first_line(blamed) != right[2],
            RANK_ADVICE: who != rank,
        }
        return Finding(", ".join(wrong), tuple(words for words, holds in advice.items() if holds))

    return Case(
        f"{n} ranks, {what}",
        [(stacks,)],
        right=judge,
        shown=(
            f"stacks: rank {rank} is in {parse_frame(blamed.split()[0])[0]}, most of the others in "
            f"{right[1]}"
        ),
    )


def parse_frame(frame: str) -> tuple[str, int]:
    """Return a frame's function and its line."""
    line, _, name = frame[1:].partition(":")
    return name, int(line)


def first_line(frames: str) -> int:
    """Return the line of the first frame of train.py."""
    return next(parse_frame(frame)[1] for frame in frames.split() if frame[0] == "T")


def draw_thread_title(draw: Draw, name: str) -> str:
    return f"{name} 0x00007f{draw.rng.randrange(16**8):08x}c0"


EXERCISE = Exercise(case, kind=Kind.JUDGEMENT, sizes=(1,), count=36)
