"""An exception that ends a learner's thread is shown, even if the main program then fails because of it."""

from __future__ import annotations

import threading

import pytest
import torch

from helpers.checks.case import Case
from helpers.checks.execution import Execution
from helpers.checks.exercise import Exercise
from helpers.checks.judge import judge
from helpers.checks.kinds import Kind
from helpers.ranks.failures import RankFailed
from helpers.ranks.launcher import launch


def fills_in_threads(rank: int, world_size: int) -> torch.Tensor:
    results: list[torch.Tensor | None] = [None, None]

    def work(k: int) -> None:
        results[k] = torch.ones(1).chunk(2)[k]

    threads = [threading.Thread(target=work, args=(k,)) for k in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return torch.cat(results)


def returns_anyway(rank: int, world_size: int) -> int:
    thread = threading.Thread(target=lambda: [][rank])
    thread.start()
    thread.join()
    return 0


def handles_its_thread(rank: int, world_size: int) -> list[str]:
    seen: list[str] = []
    threading.excepthook = lambda args: seen.append(args.exc_type.__name__)
    thread = threading.Thread(target=lambda: [][rank])
    thread.start()
    thread.join()
    return seen


def raises_before_its_thread(rank: int, world_size: int) -> None:
    go = threading.Event()

    def work() -> None:
        go.wait(20)
        raise KeyError("later")

    threading.Thread(target=work).start()
    try:
        raise ValueError("first")
    finally:
        go.set()


def test_reports_thread_exception_first() -> None:
    with pytest.raises(RankFailed) as caught:
        launch(fills_in_threads, 1)
    first, *_ = str(caught.value).splitlines()
    assert first == "rank 0 raised IndexError: tuple index out of range"
    assert "in a thread; then the main program raised TypeError: expected Tensor" in str(
        caught.value
    )
    assert caught.value.error.frames[-1].function == "work"
    assert "Traceback" in caught.value.run.output[0]  # Python's text


@pytest.mark.extended
def test_successful_run_keeps_thread_exceptions() -> None:
    run = launch(returns_anyway, 2)
    assert run.values == [0, 0]
    assert ["IndexError" in text for text in run.thread_errors] == [True, True]
    assert run.thread_errors[1].startswith("a thread of rank 1 raised IndexError")


def test_wrong_value_keeps_thread_exception() -> None:
    run = launch(returns_anyway, 1)
    case = Case("a case", ((),), 1)
    verdict = judge(Exercise(lambda draw: case, (), (), Kind.RANKS), Execution(case, run))
    assert "a thread of rank 0 raised IndexError: list index out of range" in verdict.message


def test_respects_exception_hook_of_learner() -> None:
    run = launch(handles_its_thread, 1)
    assert (run.values, run.thread_errors) == ([["IndexError"]], ())


def test_ignores_later_thread_exceptions() -> None:
    with pytest.raises(RankFailed, match="rank 0 raised ValueError: first"):
        launch(raises_before_its_thread, 1)
