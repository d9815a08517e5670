"""`make messages` provokes each kind of message for real, and writes all messages on two pages.

`python -m tests.messages [EXERCISE ...]` writes build/messages.txt and build/messages.html. The
wrong answers of these exercises are checked; without names, those of a few exercises.
"""

from __future__ import annotations

import ctypes
import os
import sys
import time
from collections.abc import Callable, Iterator
from html import escape
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist

from helpers.answers.build import Answer, Origin, Problem, build_answer, cell_number
from helpers.answers.notebook import UnreadableNotebook, read_notebook
from helpers.checks.answer_file import AnswerKind
from helpers.checks.check_answer import grade
from helpers.checks.mistakes import known_answers
from helpers.checks.registry import find_exercise
from helpers.course.doctor import PROBES, Finding, format_finding, run_probes
from helpers.course.hints import hint
from helpers.course.home import home
from helpers.course.quizzes import answer_html, load_quizzes, predict
from helpers.course.show_message import to_html
from helpers.ranks.launcher import launch
from helpers.views.lanes import lanes_html, lanes_text
from helpers.views.verdict import verdict_html, verdict_text
from tests.answers import test_problems, test_reader
from tests.ranks.test_advice import AS_SCRIPTS, ON_GPUS, failure_of
from tests.trace.deadlocks.record import PROGRAMS

EXERCISES = ["my_slice", "ping_pong", "swap", "broadcast_from", "who_hangs", "HookedDDP"]
FOLDER = Path(__file__).parents[1] / "build"
Shown = tuple[str, str, str]  # a title, a terminal's text, and a notebook's HTML
FAIL: dict[str, Callable[[], object]] = {
    "an exception": lambda: {}["missing"],
    "a segmentation fault": lambda: ctypes.string_at(0),
    "SIGKILL": lambda: os.kill(os.getpid(), 9),
    "os._exit": lambda: os._exit(3),
    "sys.exit": lambda: sys.exit(3),
    "set_trace": lambda: breakpoint(),
    "input": lambda: input(),
    "much output": lambda: print("y" * 2_000_000),
    "a function is returned": lambda: print,
    "a generator is returned": lambda: (i for i in [1]),
    "a module is returned": lambda: torch.nn.Linear(1, 1),
}
REFUSED: dict[str, Callable[[], object]] = {
    "what a function returned": lambda: launch(3, 2),
    "no parameters": lambda: launch(lambda: 0, 2),
    "no ranks": lambda: launch(print, 0),
    "half a rank": lambda: launch(print, 2.5),
    "a backend that does not exist": lambda: launch(print, 2, backend="tcp"),
    "a generator function": lambda: launch(lambda rank, n: (yield), 2),
    "a generator": lambda: launch(lambda rank, n, rows: 0, 2, args=((i for i in [1]),)),
}


def main(names: list[str]) -> None:
    FOLDER.mkdir(exist_ok=True)
    os.environ["REAL_RANKS_PROGRESS"] = str(progress := FOLDER / "progress.json")
    progress.unlink(missing_ok=True)
    shown = [*course(), *launches(), *refused(), *no_answers(), *verdicts(names or EXERCISES)]
    text = "\n\n".join(f"## {title}\n{told}" for title, told, _ in shown)
    (FOLDER / "messages.txt").write_text(text)
    page = "".join(f"<h3>{escape(title)}</h3>{html}" for title, _, html in shown)
    (FOLDER / "messages.html").write_text(f'<!doctype html><meta charset="utf-8">{page}')
    print(f"{len(shown)} messages in {FOLDER}")


def plain(title: str, text: str) -> Shown:
    return title, text, f"<pre>{escape(text)}</pre>"


def launches() -> Iterator[Shown]:
    def show_failure(title: str, fn: Callable[..., object], size: int = 3, **options: Any) -> Shown:
        run = launch(fn, size, on_failure="return", **options)
        return title, lanes_text(run), lanes_html(run)

    for name, (work, size, init) in PROGRAMS.items():
        yield show_failure(f"deadlock: {name}", work, size, init=init, timeout=20)
    for title, act in FAIL.items():
        yield show_failure(title, lambda rank, n, act=act: act() if rank == 1 else dist.barrier())
        yield show_failure(f"{title}, on all ranks", lambda rank, n, act=act: act())
    yield show_failure("a timeout", lambda rank, n: time.sleep(60), timeout=1)
    yield show_failure(
        "a timeout of many", lambda rank, n: time.sleep(60 + rank % 3), 12, timeout=2
    )


def refused() -> Iterator[Shown]:
    for title, call in REFUSED.items():
        try:
            call()
        except Exception as error:
            yield plain(f"refused: {title}", f"{type(error).__name__}: {error}")
    for lines, init in ((ON_GPUS, True), (AS_SCRIPTS, False)):
        for title, (line, _) in lines.items():
            yield plain(f"advice: {title}", failure_of(line, init=init))


def verdicts(names: list[str]) -> Iterator[Shown]:
    for name in names:
        for known in known_answers(find_exercise(name)):
            if known.source and known.kind is not AnswerKind.RIGHT:
                lines = (Origin(1, known.source.count("\n") + 1, 0, 1),)
                result = grade(find_exercise(name), Answer(name, known.source, lines), cell_number)
                yield f"{name}: {known.title}", verdict_text(result), verdict_html(result)


def no_answers() -> Iterator[Shown]:
    def rows(test: object) -> list[Any]:
        return [row for mark in getattr(test, "pytestmark", []) for row in mark.args[1]]

    path = FOLDER / "nb.ipynb"
    for content, _ in rows(test_reader.test_unreadable_file_message_fits_one_line):
        path.write_bytes(content)
        try:
            read_notebook(path)
        except UnreadableNotebook as error:
            yield plain(f"a file: {content[:30]!r}", str(error))
    for text in (row for test in vars(test_problems).values() for row in rows(test)):
        answer = text if "f(" in str(text) else f"{text}\n---\ndef f():\n    return x"
        found = build_answer(test_problems.cells(answer), "f") if isinstance(text, str) else None
        if isinstance(found, Problem):
            yield plain(f"no answer: {text}", found.message)


def course() -> Iterator[Shown]:
    yield "home", repr(home()), home()._repr_html_()
    for told in map(hint, 4 * ["broadcast_from"]):
        yield "a hint", repr(told), to_html(told.text)
    quiz = next(iter(load_quizzes().values()))
    for choice, letter in enumerate(quiz.option_letters):
        yield f"answer {letter}", repr(predict(quiz.id, letter)), answer_html(quiz, choice)
    for finding, (name, _, remedy) in zip(run_probes(), PROBES, strict=True):
        failed = format_finding(Finding(name, "warning", "if it fails", remedy))
        yield plain("doctor", f"{format_finding(finding)}\n{failed}")


if __name__ == "__main__":
    main(sys.argv[1:])
