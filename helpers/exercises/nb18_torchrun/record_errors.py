"""18.2 Let the report name the cause (5 min, ●○○○○)

- `record` is a decorator, so it takes a function and gives a function. Which of the two has to be called?
- `from torch.distributed.elastic.multiprocessing.errors import record`. Call what `record(main)` gives, and
  catch nothing.
- record(main)()
"""

from dataclasses import replace
from typing import Any

from helpers.checks.author import *
from helpers.exercises.nb18_torchrun.in_ranks.agents import ERRORS, failing

CALLED = (
    "`record(main)` returns a function. Call that one, once, and do not call main in any other way."
)
SUCCESS = (
    "main raised, but the worker ended with exit code 0, which its agent takes for success. Do not catch the "
    "exception."
)
EMPTY = (
    "The worker failed, but its error file has no message that the agent can read: it is empty, or not the "
    "JSON that `record` writes. `record(main)` returns a function that calls main and writes down what it "
    "raises: call that function."
)
OWN = "Do not replace main's exception: `record` writes it down and raises it again."
HARD = (
    "The worker ended before main's exception had left your function, as with `os._exit`: no traceback is "
    "printed and no atexit handler runs. Do not catch the exception."
)


def case(draw: Draw) -> Case:
    bad = draw.of((), (draw.rank(),), (draw.rank(),), tuple(range(draw.ranks)))
    return drawn(draw, draw.ranks, bad, real=False)


def under_an_agent(draw: Draw) -> Case:
    return drawn(draw, 2, (draw.whole(0, 1),), real=True)


def drawn(draw: Draw, n: int, bad: tuple[int, ...], real: bool) -> Case:
    kind = draw.of(*ERRORS)
    text = (
        f"{draw.of('shard', 'step', 'file')} {draw.whole(1, 999)}: {draw.of('empty', 'nan', 'no')}"
    )
    message = f"{kind}: {ERRORS[kind](text)}"
    right = [
        {
            "calls of main": 1,
            "exit code": int(rank in bad),
            "exception": "",
            "error file": message if rank in bad else "",
            "other files": "",
        }
        for rank in range(n)
    ]
    parts = NamedParts(right)

    def judged(got: Any, rank: int) -> Finding | None:
        found = parts(got, rank)
        if found is None or not isinstance(got, dict):
            return found
        failed = rank in bad
        if failed and found.what.startswith("error file: ,"):
            found = replace(found, what=f"its error file has no message; expected: {message}")
        known = {
            CALLED: got["calls of main"] != 1,
            SUCCESS: failed and not got["exit code"],
            EMPTY: failed and not got["error file"],
            HARD: bool(got["exception"]),
        }
        return replace(found, advice=tuple(words for words, holds in known.items() if holds))

    what = f"main raises {kind} on {plural(len(bad), 'worker')}" if bad else "main raises nothing"
    return Case(
        f"{what}{', real torchrun' if real else ''}",
        [(n, list(bad), kind, text, real)] * n,
        right=judged,
        seconds=45.0 if real else 10.0,
        shown="main" + (f", which raises on {', '.join(map(str, bad))}" if bad else ""),
    )


EXERCISE = Exercise(
    case,
    failed=(
        CrashAdvice(
            "^(SystemExit|RuntimeError|Exception)",
            OWN,
            when=lambda case, run: case.given[0][1] != [],
        ),
    ),
    kind=Kind.SCRIPT,
    driver=failing,
    reported=("calls of main", "exception", "error file", "other files"),
    sizes=(1, 2, 3),
    count=12,
    last=under_an_agent,
)
