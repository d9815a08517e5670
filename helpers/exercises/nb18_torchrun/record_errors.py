"""18.2 Let the report name the cause (5 min, ●○○○○)

- `record` is a decorator, so its argument is a function, and it returns a function. Which of the two should
  you call?
- `from torch.distributed.elastic.multiprocessing.errors import record`. Call the function returned by
  `record(main)`, without catching anything.
- record(main)()
"""

from dataclasses import replace
from typing import Any

from helpers.checks.author import *
from helpers.exercises.nb18_torchrun.in_ranks.agents import ERRORS, run_failing_main

CALL_ADVICE = (
    "`record(main)` returns a function. Call this function once, and don't call main in any other "
    "way."
)
EXITCODE_ADVICE = (
    "main raised an exception, but the worker ended with exit code 0, which its agent treats as success. "
    "Don't catch the exception."
)
ERROR_FILE_ADVICE = (
    "The worker failed, but its error file has no message that the agent can read: the file is empty, or "
    "not the JSON that `record` writes. `record(main)` returns a function that calls main and writes its "
    "exception into the error file: call this function."
)
EXCEPTION_ADVICE = (
    "Don't replace main's exception: `record` writes it into the error file and raises it again."
)
HARD_EXIT_ADVICE = (
    "The worker ended before main's exception had left your function, for example by calling `os._exit`, so "
    "no traceback is printed and no atexit handler runs. Don't catch the exception."
)


def case(draw: Draw) -> Case:
    bad = draw.of((), (draw.rank(),), (draw.rank(),), tuple(range(draw.ranks)))
    return draw_case(draw, draw.ranks, bad, use_torchrun=False)


def draw_real_agent_case(draw: Draw) -> Case:
    return draw_case(draw, 2, (draw.whole(0, 1),), use_torchrun=True)


def draw_case(draw: Draw, n: int, failing_ranks: tuple[int, ...], use_torchrun: bool) -> Case:
    kind = draw.of(*ERRORS)
    text = (
        f"{draw.of('shard', 'step', 'file')} {draw.whole(1, 999)}: {draw.of('empty', 'nan', 'no')}"
    )
    message = f"{kind}: {ERRORS[kind](text)}"
    right = [
        {
            "calls of main": 1,
            "exit code": int(rank in failing_ranks),
            "exception": "",
            "error file": message if rank in failing_ranks else "",
            "other files": "",
        }
        for rank in range(n)
    ]
    parts = NamedParts(right)

    def judge(got: Any, rank: int) -> Finding | None:
        found = parts(got, rank)
        if found is None or not isinstance(got, dict):
            return found
        failed = rank in failing_ranks
        if failed and found.what.startswith("error file: ,"):
            found = replace(found, what=f"its error file has no message; expected: {message}")
        known = {
            CALL_ADVICE: got["calls of main"] != 1,
            EXITCODE_ADVICE: failed and not got["exit code"],
            ERROR_FILE_ADVICE: failed and not got["error file"],
            HARD_EXIT_ADVICE: bool(got["exception"]),
        }
        return replace(found, advice=tuple(words for words, holds in known.items() if holds))

    what = (
        f"main raises {kind} on {plural(len(failing_ranks), 'worker')}"
        if failing_ranks
        else "main raises nothing"
    )
    return Case(
        f"{what}{', use_torchrun torchrun' if use_torchrun else ''}",
        [(n, list(failing_ranks), kind, text, use_torchrun)] * n,
        right=judge,
        seconds=45.0 if use_torchrun else 10.0,
        shown="main"
        + (f", which raises on {', '.join(map(str, failing_ranks))}" if failing_ranks else ""),
    )


EXERCISE = Exercise(
    case,
    failed=(
        CrashAdvice(
            "^(SystemExit|RuntimeError|Exception)",
            EXCEPTION_ADVICE,
            when=lambda case, run: case.given[0][1] != [],
        ),
    ),
    kind=Kind.SCRIPT,
    driver=run_failing_main,
    reported=("calls of main", "exception", "error file", "other files"),
    sizes=(1, 2, 3),
    count=12,
    last=draw_real_agent_case,
)
