"""Each heading of a verdict is written in one file, and readers of all formats get the same words."""

from __future__ import annotations

import ast
from functools import cache
from pathlib import Path

import pytest

from helpers.check_result import CaseVerdict, CheckResult, Outcome, Row
from helpers.checks.registry import get
from helpers.grading.record import build_record
from helpers.grading.reports.gradescope import gradescope_results
from helpers.grading.reports.junit import junit
from helpers.grading.reports.pages import learner_page
from helpers.views.failed_case import IN_CASE, START, TRAFFIC
from helpers.views.verdict import verdict_html, verdict_text
from tests.grading.reports.builders import course_of, record
from tests.grading.reports.page_tags import Page

HELPERS = Path(__file__).parents[1] / "helpers"
HEADINGS = (
    IN_CASE,
    TRAFFIC[1:],
    START,
    "more wrong rank",
    "The same call again:",
    "Stuck?",
    "draws who waits for whom.",
    "This answer failed only by exceeding the time limit",
)


@cache
def written_texts(path: Path) -> str:
    """Return the strings of a program without docstrings, or the text of any other file."""
    text = path.read_text(encoding="utf-8")
    if path.suffix != ".py":
        return text
    tree = ast.parse(text)
    docstrings = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    constants = (node for node in ast.walk(tree) if isinstance(node, ast.Constant))
    return "\n".join(
        node.value
        for node in constants
        if isinstance(node.value, str) and id(node) not in docstrings
    )


@pytest.mark.sample(2)
@pytest.mark.parametrize("heading", HEADINGS)
def test_one_file_contains_each_heading(heading: str) -> None:
    paths = [path for kind in ("py", "html", "md", "js") for path in HELPERS.rglob(f"*.{kind}")]
    assert len([path for path in paths if heading in written_texts(path)]) == 1


FAILED = CaseVerdict(
    label="3 ranks, 5 elements",
    outcome=Outcome.WRONG,
    rows=(Row(0, "x = 1", "6", "6"), Row(1, "x = 2", "6", "2", "element 0 differs")),
    broken=("3 messages of 8 bytes, but 2 suffice",),
    message="a rank printed an error",
    advice="Rank 1 kept its input.",
)
WORDS = (
    "In the case 3 ranks, 5 elements:",
    "a rank printed an error",
    "How the ranks communicated: 3 messages of 8 bytes, but 2 suffice",
    f"{START} Rank 1 kept its input.",
)
VALUES = "rank 1: given x = 2, expected 6, got 2  <- element 0 differs"


def test_all_formats_contain_same_words() -> None:
    result = CheckResult("ping_pong", "Ping-pong", Outcome.WRONG, (FAILED,))
    graded = record("Ada", build_record(get("ping_pong"), "wrong", cases=(FAILED.as_record(),)))
    course = course_of([graded], "Autumn")
    texts = (
        verdict_text(result),
        junit(course).decode().replace("&lt;", "<"),
        "\n".join(test["output"] for test in gradescope_results([graded])["tests"]),
    )
    pages = (verdict_html(result).encode(), learner_page(course, course.standings[0]))
    for text in texts:
        assert [words for words in (*WORDS, VALUES) if words not in text] == []
    for page in pages:
        seen = " ".join(Page(page).text.split())
        assert [words for words in WORDS if words not in seen] == []


def test_first_notebook_quotes_verdict_heading() -> None:
    """The notebook asks learners to read the part of a verdict below this heading."""
    first = Path(__file__).parents[1] / "solutions" / "00_start_here.ipynb"
    assert f'read \\"{START.removesuffix(":")}\\"' in first.read_text(encoding="utf-8")
