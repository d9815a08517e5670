"""A verdict's table has a column for each item that at least one rank has, and no others."""

from __future__ import annotations

from dataclasses import replace

import pytest

from helpers.check_result import CaseVerdict, CheckResult, Outcome, Row
from helpers.views.verdict import verdict_html, verdict_text


def result(*rows: Row) -> CheckResult:
    case = CaseVerdict(label="a case", outcome=Outcome.WRONG, rows=rows)
    return CheckResult("f", "Exercise 1.1: F", Outcome.WRONG, (case,))


def test_omits_columns_without_values() -> None:
    html = verdict_html(result(Row(0, "measure, threads = 2", "", "", "too slow")))
    assert ">given<" in html and ">expected<" not in html and ">got<" not in html
    assert ">rank<" not in html and "measure, threads = 2" in html


def test_partial_column_appears_for_all_ranks() -> None:
    html = verdict_html(result(Row(0, "", "1", "2", "it differs"), Row(1, "", "1", "1")))
    assert ">rank<" in html and ">expected<" in html and ">got<" in html and ">given<" not in html
    assert html.count("<tr>") - html.count("a case</td>") == 3


def test_text_shows_ranks_if_several() -> None:
    assert "rank 0: given 5" in verdict_text(
        result(Row(0, "5", "1", "2", "off"), Row(1, "5", "1", "1"))
    )
    assert "rank 0" not in verdict_text(result(Row(0, "5", "1", "2", "off")))


WORLDS = {
    "": (),
    " on 1 rank": (1,),
    " on 2 to 4 ranks": (2, 3, 4),
    " on 1, 2 and 4 ranks": (1, 2, 4),
}


@pytest.mark.parametrize("words", WORLDS)
def test_pass_lists_world_sizes_and_rules(words: str) -> None:
    cases, rules = (CaseVerdict(label="a case", outcome=Outcome.PASSED),) * 3, ("sends & receives",)
    passed = CheckResult("f", "F", Outcome.PASSED, cases, rules=rules, sizes=WORLDS[words])
    assert verdict_text(passed) == f"✓ F: passed\n  ✓ Right in 3 cases{words}\n  ✓ sends & receives"
    html = verdict_html(replace(passed, points=5, out_of=5))
    assert f">✓ Right in 3 cases{words}<" in html and ">✓ sends &amp; receives<" in html
    assert "points" not in html


def test_shows_long_case_label_only_once() -> None:
    story = "round 0: all come; " * 40
    cases = tuple(CaseVerdict(label=f"{story}{k}", outcome=Outcome.WRONG) for k in range(3))
    text = verdict_text(CheckResult("f", "Exercise 1.1: F", Outcome.WRONG, cases))
    assert "3 cases" in text and text.count("round 0") < 10


LONG = "length=12, num_replicas=6, rank=5, shuffle=False, drop_last=True, seed=3, epoch=7"


def test_shows_all_arguments_of_case() -> None:
    wrong = CaseVerdict(
        label=LONG,
        outcome=Outcome.WRONG,
        rows=(Row(0, "", "[5, 11]", "[4, 6]", "it differs"),),
    )
    failed = CheckResult("f", "F", Outcome.WRONG, (wrong,))
    text, html = verdict_text(failed), verdict_html(failed)
    for argument in LONG.split(", "):
        assert f"\n    {argument}\n" in text
        name, value = argument.split("=")
        assert f">{name}</td>" in html and f">{value}</td>" in html


def test_lists_equal_cases_once() -> None:
    cases = (CaseVerdict(label="2 ranks, 1, 0 batches", outcome=Outcome.WRONG),) * 3
    text = verdict_text(CheckResult("f", "F", Outcome.WRONG, cases))
    assert "wrong          2 ranks, 1, 0 batches (3 times)" in text


@pytest.mark.parametrize("is_live", [True, False])
def test_only_notebooks_suggest_wait_graph(monkeypatch: pytest.MonkeyPatch, is_live: bool) -> None:
    monkeypatch.setattr("helpers.views.verdict.in_kernel", lambda: is_live)
    case = CaseVerdict(label="a case", outcome=Outcome.DEADLOCKED)
    told = verdict_text(CheckResult("f", "F", Outcome.DEADLOCKED, (case,)))
    assert ("wait_graph(result.run)" in told) is is_live
