"""The table of a verdict has a column for what at least one rank has, and no other."""

from __future__ import annotations

from dataclasses import replace

import pytest

from helpers.checks.result import CaseVerdict, CheckResult, Outcome, Row
from helpers.views.verdict import verdict_html, verdict_text


def result(*rows: Row) -> CheckResult:
    case = CaseVerdict("a case", Outcome.WRONG, rows)
    return CheckResult("f", "Exercise 1.1: F", Outcome.WRONG, (case,))


def test_what_no_rank_has_is_no_column() -> None:
    html = verdict_html(result(Row(0, "measure, threads = 2", "", "", "too slow")))
    assert ">given<" in html and ">expected<" not in html and ">got<" not in html
    assert ">rank<" not in html and "measure, threads = 2" in html


def test_what_one_rank_has_is_a_column_for_all() -> None:
    html = verdict_html(result(Row(0, "", "1", "2", "it differs"), Row(1, "", "1", "1")))
    assert ">rank<" in html and ">expected<" in html and ">got<" in html and ">given<" not in html
    assert html.count("<tr>") - html.count("a case</td>") == 3


def test_the_text_names_ranks_where_there_are_several() -> None:
    assert "rank 0: given 5" in verdict_text(
        result(Row(0, "5", "1", "2", "off"), Row(1, "5", "1", "1"))
    )
    assert "rank 0" not in verdict_text(result(Row(0, "5", "1", "2", "off")))


@pytest.mark.parametrize(
    ("sizes", "words"),
    [
        ((), "Right in 3 cases"),
        ((1,), "Right in 3 cases on 1 rank"),
        ((2, 3), "Right in 3 cases on 2 and 3 ranks"),
        ((2, 3, 4), "Right in 3 cases on 2 to 4 ranks"),
        ((1, 2, 4), "Right in 3 cases on 1, 2 and 4 ranks"),
    ],
)
def test_a_pass_says_in_which_worlds_and_which_rules_held(
    sizes: tuple[int, ...], words: str
) -> None:
    cases = (CaseVerdict("a case", Outcome.PASSED),) * 3
    passed = CheckResult("f", "F", Outcome.PASSED, cases, points=5, out_of=5, sizes=sizes)
    passed = replace(passed, rules=("uses only send & recv",))
    assert verdict_text(passed) == f"✓ F: passed\n  ✓ {words}\n  ✓ uses only send & recv"
    html = verdict_html(passed)
    assert (
        f">✓ {words}<" in html and ">✓ uses only send &amp; recv<" in html and "points" not in html
    )


def test_a_label_that_tells_a_whole_story_is_shown_once_and_not_in_a_list() -> None:
    story = "round 0: all come; " * 40
    cases = tuple(CaseVerdict(f"{story}{k}", Outcome.WRONG) for k in range(3))
    text = verdict_text(CheckResult("f", "Exercise 1.1: F", Outcome.WRONG, cases))
    assert "3 cases" in text and text.count("round 0") < 10
