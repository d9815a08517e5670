"""One submission becomes one record, with points from hidden cases and texts from visible ones."""

from __future__ import annotations

import json
import os
import signal
import threading
import time
from dataclasses import astuple, replace
from pathlib import Path
from typing import Any

import pytest

from helpers.answers.build import Answer
from helpers.checks import right_values
from helpers.checks.exercise import VISIBLE_SECRET, Exercise
from helpers.checks.reference_source import read_reference
from helpers.checks.registry import get
from helpers.grading import grader as grader_module
from helpers.grading.cache import Cache, current_versions
from helpers.grading.grader import FAULT, Grader
from helpers.grading.judge_process import run_attempt
from helpers.grading.record import ExerciseRecord, Record, Status
from helpers.grading.reference_health import References
from helpers.grading.sandbox.levels import Plan
from helpers.grading.submissions import Job
from helpers.ranks.processes import children_of
from tests.grading.conftest import SOLUTIONS
from tests.grading.hostile.attack import text_of
from tests.grading.notebooks import HANGS, RIGHT, WRONG, write_notebook
from tests.submission_files import sample_called


def handed_in(grader: Grader, folder: Path, *cells: str) -> Record:
    path = write_notebook(folder / "02_blocking_p2p.ipynb", *cells)
    return grader.grade(Job("anna", path, "02_blocking_p2p.ipynb"))


def ping_pong(record: Record) -> ExerciseRecord:
    return next(each for each in record.exercises if each.name == "ping_pong")


@pytest.mark.extended
def test_right_answer_gets_all_points(grader: Grader, tmp_path: Path) -> None:
    record = handed_in(grader, tmp_path, RIGHT)
    assert record.status is Status.GRADED
    assert (ping_pong(record).outcome, ping_pong(record).points) == ("passed", 10.0)
    assert {each.outcome for each in record.exercises} == {"passed", "not attempted"}


def test_hidden_cases_show_no_reasons(grader: Grader, tmp_path: Path) -> None:
    exercise = ping_pong(handed_in(grader, tmp_path, WRONG))
    assert (exercise.outcome, exercise.points) == ("wrong", 0.0)
    shown = [case for case in exercise.cases if not case.hidden]
    hidden = [case for case in exercise.cases if case.hidden]
    assert len(hidden) == len(get("ping_pong").draw("a secret of the tests"))
    assert any(case.rows for case in shown)
    assert not any(c.rows or c.message or c.advice or c.broken for c in hidden)


def test_visible_case_cheat_earns_no_points(grader: Grader, tmp_path: Path) -> None:
    balls = [repr(case.given[0][0]) for case in get("ping_pong").draw()]
    cheat = f"KNOWN = {balls!r}\n" + RIGHT.replace(
        "ball += 1", "known = repr(ball) in KNOWN if i == 0 else known; ball += 1 if known else 2"
    ).replace("for _ in", "for i in")
    exercise = ping_pong(handed_in(grader, tmp_path, cheat))
    assert all(case.outcome == "passed" for case in exercise.cases if not case.hidden)
    assert exercise.points == 0
    assert exercise.outcome == "wrong"


@pytest.mark.extended
def test_reading_frames_reveals_no_hidden_inputs(grader: Grader, tmp_path: Path) -> None:
    """Visible and hidden cases are first tried in one world, from which nothing may be shown."""
    reads = """
def ping_pong(rank, world_size, ball, rounds):
    import sys
    frame = sys._getframe(1)
    while "given" not in frame.f_locals:
        frame = frame.f_back
    return [inputs[0].tolist() for inputs in frame.f_locals["given"]]
"""
    visible, hidden = (
        {repr(case.given[0][0].tolist()) for case in get("ping_pong").draw(secret)}
        for secret in (VISIBLE_SECRET, "a secret of the tests")
    )
    exercise = ping_pong(handed_in(grader, tmp_path, reads))
    shown = " ".join(row.got for case in exercise.cases for row in case.rows)
    assert exercise.outcome == "wrong"
    assert any(ball in shown for ball in visible)
    large = [ball for ball in hidden if len(ball) > 12]  # small numbers may occur by chance
    assert large and not any(ball in text_of(exercise) for ball in large)


@pytest.mark.extended
def test_grades_equal_answers_once(plan: Plan, tmp_path: Path) -> None:
    cache = Cache(tmp_path / "cache")
    versions = current_versions(plan.level)
    grader = Grader(plan, "secret", cache, versions, References(SOLUTIONS, plan))
    first = ping_pong(handed_in(grader, tmp_path / "1", HANGS))
    moved = ping_pong(handed_in(grader, tmp_path / "2", "x = 1", HANGS))
    passed = ping_pong(handed_in(grader, tmp_path / "3", RIGHT))
    said = RIGHT.replace("    for _", "    # to and fro\n\n    for _")
    commented = ping_pong(handed_in(grader, tmp_path / "4", "y = 2", said))
    other = ping_pong(handed_in(grader, tmp_path / "5", RIGHT.replace("rank > 1", "rank >= 2")))
    assert [each.cached for each in (first, moved, passed, commented, other)] == [
        False,
        True,
        False,
        True,
        False,
    ]
    assert first.outcome == "deadlocked" and "cell 2" in text_of(first)
    assert "cell 2" not in text_of(moved)
    assert text_of(moved) == text_of(first).replace("cell 2", "cell 3")
    assert (commented.outcome, commented.points) == ("passed", 10.0)
    assert "to and fro" in commented.answer


CRASHES = RIGHT.replace("if rank > 1", "if ball.dtype in CRASH: raise OSError\n    if rank > 1")


@pytest.mark.extended
@pytest.mark.parametrize("is_cause", [True, False], ids=["machine", "answer"])
def test_retries_crashed_answer_in_new_sandbox(
    grader: Grader, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_cause: bool
) -> None:
    """If it then passes, its record equals the record of an answer that passed at once."""
    dtypes = [case.given[0][0].dtype for case in get("ping_pong").draw()]
    bad = next(dtype for dtype in dtypes if dtype is not dtypes[0])
    tries: list[object] = []

    def spy(exercise: Exercise, answer: Answer, secret: str, connection: object, *rest: Any) -> Any:
        tries.append(connection)
        if is_cause and len(tries) == 3:
            answer = replace(answer, source=answer.source.replace("raise OSError", "pass"))
        return run_attempt(exercise, answer, secret, connection, *rest)  # type: ignore[arg-type]

    monkeypatch.setattr(grader_module, "run_attempt", spy)
    record = ping_pong(handed_in(grader, tmp_path, f"CRASH = [{bad}]\n{CRASHES}"))
    assert len(tries) == len(set(map(id, tries))) == 3, "all cases at once, apart, and alone"
    if is_cause:
        assert (record.outcome, record.points, record.message) == ("passed", 10.0, "")
        monkeypatch.undo()
        at_once = ping_pong(handed_in(grader, tmp_path, RIGHT))
        assert [astuple(case) for case in record.cases] == [astuple(case) for case in at_once.cases]
    else:
        shown = [case.outcome for case in record.cases if not case.hidden]
        assert shown == ["passed"] * dtypes.index(bad) + ["crashed"]
        assert record.outcome == "crashed" and 0 <= record.points < 10


class EndsAfterOne(Cache):
    """A cache whose process is killed as soon as one exercise has been stored."""

    def put(self, key: str, record: ExerciseRecord) -> None:
        super().put(key, record)
        os.kill(os.getpid(), signal.SIGKILL)


@pytest.mark.extended
def test_killed_grader_keeps_finished_exercises(plan: Plan, tmp_path: Path) -> None:
    references = References(None, plan)
    parts = plan, "a secret", Cache(tmp_path / "cache"), current_versions(plan.level), references
    with_one = Grader(*parts[:2], EndsAfterOne(tmp_path / "cache"), *parts[3:])
    pid = os.fork()
    if pid == 0:
        try:
            handed_in(with_one, tmp_path, RIGHT, "def token_ring(*args):\n    return 1")
        finally:
            os._exit(1)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == -signal.SIGKILL
    record = handed_in(Grader(*parts), tmp_path, RIGHT, "def token_ring(*args):\n    return 1")
    found = {each.name: (each.outcome, each.cached) for each in record.exercises}
    assert (found["ping_pong"], found["token_ring"]) == (("passed", True), ("wrong", False))


@pytest.mark.extended
def test_deadlock_is_explained_and_drawn(grader: Grader, tmp_path: Path) -> None:
    exercise = ping_pong(handed_in(grader, tmp_path, HANGS))
    assert (exercise.outcome, exercise.points) == ("deadlocked", 0.0)
    assert "recv" in exercise.cases[0].message
    assert exercise.picture.startswith("iVBOR")
    assert json.loads(exercise.trace)["world_size"] >= 1


@pytest.mark.extended
def test_equally_failing_reference_means_harness_fault(grader: Grader, tmp_path: Path) -> None:
    write_notebook(tmp_path / "solutions" / "02_blocking_p2p.ipynb", HANGS)
    references = References(tmp_path / "solutions", grader.plan, slot=3)
    grader = replace(grader, references=references)
    record = handed_in(grader, tmp_path, HANGS)
    exercise = ping_pong(record)
    assert record.status is Status.HARNESS_FAULT
    assert (exercise.outcome, exercise.points, exercise.out_of) == (FAULT, 0.0, 0.0)


def averaged(grader: Grader, folder: Path, source: str) -> ExerciseRecord:
    """Grade an answer to an exercise whose right values are known only to the reference solution."""
    path = write_notebook(folder / "08_synchronous_sgd.ipynb", source)
    record = grader.grade(Job("anna", path, path.name))
    return next(each for each in record.exercises if each.name == "average_gradients")


@pytest.mark.extended
def test_grades_by_reference_values(grader: Grader, tmp_path: Path) -> None:
    source = read_reference(SOLUTIONS, "08_synchronous_sgd", "average_gradients").source
    assert averaged(grader, tmp_path, source).points == 10.0
    wrong = averaged(grader, tmp_path, source.replace("dist.get_world_size()", "1"))
    assert wrong.outcome == "wrong" and wrong.points < 2.0
    assert any(case.advice for case in wrong.cases)


@pytest.mark.extended
def test_failing_reference_costs_no_points(
    grader: Grader, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = read_reference(SOLUTIONS, "08_synchronous_sgd", "average_gradients").source
    broken = source + "\n\ndef average_gradients(model):\n    raise ValueError\n"
    monkeypatch.setattr(right_values, "reference_source", lambda exercise: broken)
    found = averaged(grader, tmp_path, source)
    assert (found.outcome, found.out_of) == (FAULT, 0.0)


def test_non_notebook_error_fits_one_line(grader: Grader, tmp_path: Path) -> None:
    path = tmp_path / "x.ipynb"
    path.write_text('{"cells": [')
    record = grader.grade(Job("anna", path, "x.ipynb"))
    assert record.status is Status.UNREADABLE
    assert record.message.startswith("x.ipynb is cut off")


@pytest.mark.extended
def test_flags_imports_of_inner_course_modules(grader: Grader, tmp_path: Path) -> None:
    sly = RIGHT.replace("    if rank > 1", "    from helpers.checks import driver\n    if rank > 1")
    exercise = ping_pong(handed_in(grader, tmp_path, sly))
    assert exercise.points == 10
    assert "helpers.checks" in exercise.flags[0]


NEVER_ENDS = {
    # Its ranks compute until their time is up, as on an idle machine.
    "computes": ("while True:\n        pass", False),
    # Its ranks wait, so a busy machine might be the cause.
    "waits": ("import signal\n    signal.pause()", True),
}


@pytest.mark.timeout(300)
@pytest.mark.parametrize(
    ("loop", "is_tried_again"),
    [
        pytest.param(*NEVER_ENDS["computes"], id="computes", marks=pytest.mark.soak),
        pytest.param(*NEVER_ENDS["waits"], id="waits", marks=pytest.mark.soak),
    ],
)
def test_retries_only_waiting_loops(
    plan: Plan, tmp_path: Path, loop: str, is_tried_again: bool
) -> None:
    lines: list[str] = []
    path = write_notebook(tmp_path / "02_blocking_p2p.ipynb", f"def ping_pong(*a):\n    {loop}\n")
    references = References(SOLUTIONS, plan, slot=2)
    versions = current_versions(plan.level)
    secret = "a secret of the tests"
    grader = Grader(plan, secret, Cache(None), versions, references, 1, "none", lines.append)
    exercise = ping_pong(grader.grade(Job("anna", path, path.name)))
    assert exercise.points == 0
    if exercise.outcome == "too slow":
        pytest.skip("this machine was too busy to give the loop its processor time")
    assert exercise.outcome == "timed out", text_of(exercise)
    again = [
        line for line in lines if line.startswith("anna: ping_pong will run again alone, for up to")
    ]
    assert lines == again and bool(again) is is_tried_again


REPLACED = "torch.equal = torch.allclose = torch.Tensor.equal = lambda *a, **k: True\n"


@pytest.mark.extended
@pytest.mark.parametrize(
    ("name", "title"),
    [
        (
            "overlap",
            "the result is written into the tensor that is still sent",
        ),
        pytest.param(
            *("mpi_all_reduce", "the elements between are summed, too"),
            marks=pytest.mark.soak,  # scripts take half a minute
        ),
    ],
)
def test_replaced_comparison_is_wrong_and_flagged(
    grader: Grader, tmp_path: Path, name: str, title: str
) -> None:
    """Only the ranks know that a buffer was changed while it was being sent, or that a file was written."""
    sample = sample_called(name, title)
    path = write_notebook(tmp_path / f"{sample.notebook}.ipynb", REPLACED + sample.source)
    record = grader.grade(Job("anna", path, path.name))
    exercise = next(each for each in record.exercises if each.name == sample.exercise)
    assert exercise.outcome == sample.outcome, text_of(exercise)
    assert "replaces `torch.equal`" in " ".join(exercise.flags)


@pytest.mark.extended
def test_killed_template_costs_no_points(plan: Plan, tmp_path: Path) -> None:
    if plan.level != "bubblewrap":
        pytest.skip("only behind bubblewrap are rank servers forked from a template")
    slow = RIGHT.replace("rounds):\n", "rounds):\n    import time\n    time.sleep(0.6)\n", 1)
    with Plan(plan.level, plan.staged) as mine:
        mine.begin()
        references = References(SOLUTIONS, mine, slot=2)
        versions = current_versions(mine.level)
        grader = Grader(mine, "a secret of the tests", Cache(None), versions, references, 1)
        killer = threading.Thread(target=_kill_template, args=(mine,))
        killer.start()
        record = handed_in(grader, tmp_path, slow)
        killer.join()
    assert (ping_pong(record).outcome, ping_pong(record).points) == ("passed", 10.0)


def _kill_template(plan: Plan) -> None:
    """Kill the template while an answer runs, like the kernel when memory is short."""
    template = plan._templates[-1]
    deadline = time.monotonic() + 60
    while not list(children_of(template._first)) and time.monotonic() < deadline:
        time.sleep(0.01)
    time.sleep(0.4)
    os.kill(template._first, signal.SIGKILL)


@pytest.mark.extended
def test_unjudgeable_results_state_their_cause(grader: Grader, tmp_path: Path) -> None:
    """Such results are not reported as a fault of the check, because the reference solution works."""
    forged = """
def safe_buffers(fill, count, length, dst):
    import sys, numpy
    frame = sys._getframe(1)
    while "results" not in frame.f_locals or "recorded_call_count" not in frame.f_globals:
        frame = frame.f_back
    harness, results = frame.f_globals, frame.f_locals["results"]
    count_them = harness["recorded_call_count"]
    def lie():
        for told in results:
            told[0] = numpy.array([1, 2])
        return count_them()
    harness["recorded_call_count"] = lie
    works, buffers = [], [torch.empty(length), torch.empty(length)]
    for i in range(count):
        if i >= 2:
            works[i - 2].wait()
        fill(buffers[i % 2], i)
        works.append(dist.isend(buffers[i % 2], dst))
    for work in works[-2:]:
        work.wait()
"""
    odd = "def fit_amdahl(*args):\n    return torch.tensor([1 + 2j])"
    vast = "def strong_scaling(*args):\n    return range(10**9)"
    for notebook, *cells in (
        ("03_nonblocking_p2p", forged),
        ("10_dataparallel_vs_ddp", odd, vast),
    ):
        path = write_notebook(tmp_path / f"{notebook}.ipynb", *cells)
        record = grader.grade(Job("eve", path, path.name))
        assert record.status is Status.GRADED
        for exercise in record.exercises:
            text = text_of(exercise)
            assert exercise.points < exercise.out_of and exercise.outcome != "passed"
            assert "at fault" not in text and "report it" not in text and "memory" not in text, text
