"""A class's wrong answers are grouped by behavior, and one sentence per group advises later learners."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from helpers.answers.data import Answer
from helpers.check_result import CaseRecord, Row
from helpers.checks import mistakes
from helpers.checks.check_answer import grade
from helpers.checks.mistakes import KnownMistake, known_mistakes
from helpers.checks.registry import get
from helpers.course.cli import main
from helpers.grading.groups import AnswerGroup, group_answers, wrong_answers
from helpers.grading.record import Record, Status, build_record
from helpers.grading.sandbox.levels import Plan
from tests.grading.notebooks import IMPORTS

FEW = ("broadcast_from",)
"""Exercises whose groups are tested in each run; `make soak` tries more."""
MORE = (
    "ping_pong",
    "exact_accuracy",
    "ring_all_reduce",
    "repair_buckets",
    "all_reduce_by_parameter_server",
    "my_slice",
)
EVIL = """\
def broadcast_from(rank, world_size, x, shape, dtype, src):
    import os, signal
    os.kill(os.getpid(), signal.SIGKILL)
"""
VAST = """\
def broadcast_from(rank, world_size, x, shape, dtype, src):
    return torch.ones(1).expand(1 << 40)
"""


def handed_in(exercise: str, *sources: str, outcome: str = "wrong") -> list[Record]:
    """Return the records of a class with one learner for each source."""
    return [
        Record(
            f"learner {number}",
            f"{number}.ipynb",
            get(exercise).notebook,
            Status.GRADED,
            exercises=(build_record(get(exercise), outcome, answer=source),),
        )
        for number, source in enumerate(sources)
    ]


def groups_of(plan: Plan, exercise: str, *sources: str) -> list[AnswerGroup]:
    answers = wrong_answers([("a class", handed_in(exercise, *sources))])
    return group_answers(answers, plan)[exercise]


def each_twice(known: tuple[KnownMistake, ...]) -> list[str]:
    """Return each program twice, the second time written slightly differently."""
    return [m.source + more for m in known for more in ("", "\nspare = 0\n")]


@pytest.mark.extended
@pytest.mark.timeout(300)
@pytest.mark.parametrize("name", [*FEW, *(pytest.param(n, marks=pytest.mark.soak) for n in MORE)])
def test_finds_one_group_for_each_mistake(plan: Plan, name: str) -> None:
    known = tuple(
        m for m in known_mistakes(get(name)) if m.outcome.value in {"wrong", "deadlocked"}
    )
    groups = groups_of(plan, name, *each_twice(known))
    found = [{int(learner.split()[1]) // 2 for _, learner in group.learners} for group in groups]
    # both versions of a mistake are in one group, and only mistakes with the same sentence share a group
    assert sorted(k for group in found for k in group) == list(range(len(known)))
    for group in found:
        assert len({known[k].words for k in group}) == 1, [known[k].title for k in group]


@pytest.mark.extended
def test_killed_or_flooding_rank_keeps_groups(plan: Plan) -> None:
    same = [m.source for m in known_mistakes(get("broadcast_from")) if m.outcome.value == "wrong"][
        :1
    ]
    groups = groups_of(plan, "broadcast_from", EVIL, VAST, same[0], same[0] + "\nspare = 0\n")
    sizes = sorted(len(group.learners) for group in groups)
    assert sizes == [1, 1, 2]


@pytest.mark.extended
def test_recognizes_mistake_of_earlier_class(
    plan: Plan, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Show the table and the group's program, add the sentence, and expect it for another such program."""
    monkeypatch.setenv("REAL_RANKS_MISTAKES", str(tmp_path / "own"))
    source = "def broadcast_from(rank, world_size, x, shape, dtype, src):\n"
    source += "    x = x if rank == src else {}\n"
    source += "    dist.broadcast(x, src)\n    return x.clone().fill_(7)\n"
    box = "torch.empty(shape, dtype=dtype)"
    one = source.format(box)
    other = IMPORTS + source.replace("x.clone().fill_(7)", "torch.full_like(x, 7)").format(box)
    case = CaseRecord(
        label="2 ranks, (2,)",
        hidden=False,
        outcome="wrong",
        credit=0.0,
        rows=(Row(0, "", "1", "7", "not the same"),),
    )
    exercise = get("broadcast_from")
    record = build_record(exercise, "wrong", answer=one, cases=(case,))
    out = tmp_path / "results"
    graded = Record("A", "a.ipynb", exercise.notebook, Status.GRADED, exercises=(record,))
    (out / "records").mkdir(parents=True)
    (out / "records" / "a.json").write_text(json.dumps(graded.as_json()))

    def run(*words: str) -> str:
        result = CliRunner().invoke(main, ["mistakes", str(out), "--sandbox", plan.level, *words])
        assert result.exit_code == 0, result.output
        return result.output

    assert "1 learner (1 program), wrong" in run()
    assert "rank 0 gave 7, not 1: not the same" in run()
    words = "Every number that comes back is 7."
    shown = run("--only", "4.1", "--group", "1", "--say", words)
    assert "return x.clone().fill_(7)" in shown
    assert words in (tmp_path / "own" / "broadcast_from.py").read_text()
    mistakes.clear_caches()
    try:
        verdict = grade(exercise, Answer("broadcast_from", other, ()), str, every_case=False)
        assert [case.advice for case in verdict.cases if not case.passed] == [words]
    finally:
        monkeypatch.undo()
        mistakes.clear_caches()
