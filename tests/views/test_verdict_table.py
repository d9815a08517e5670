"""The table of a verdict has a column for what at least one rank has, and no other."""

from __future__ import annotations

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


def test_a_label_that_tells_a_whole_story_is_shown_once_and_not_in_a_list() -> None:
    story = "round 0: all come; " * 40
    cases = tuple(CaseVerdict(f"{story}{k}", Outcome.WRONG) for k in range(3))
    text = verdict_text(CheckResult("f", "Exercise 1.1: F", Outcome.WRONG, cases))
    assert "3 cases" in text and text.count("round 0") < 10
