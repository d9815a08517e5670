"""A page has only the tags of its template, whatever a record contains."""

from __future__ import annotations

import re

import pytest

from helpers.grading.record import Record
from helpers.grading.reports.class_page import class_page
from helpers.grading.reports.pages import learner_page
from tests.grading.reports.builders import course_of
from tests.grading.reports.hostile import TEXTS, UNSHOWABLE, hostile_record, unreadable_record
from tests.grading.reports.page_tags import Page

MOST = 400_000
"""Maximum bytes of a page with its picture, whatever a record contains."""

ATTRIBUTE_VALUES = {
    "href": r"#e\d+-\d+|learners/[a-z0-9-]+\.html",
    "src": r"data:image/png;base64,[A-Za-z0-9+/]+=*",
    "id": r"e\d+-\d+",
    "class": r"(mark |full |name |)(passed|failed|open|fault|narrow|text)|[a-z]*",
}


def records_of(text: str) -> list[Record]:
    return [hostile_record(text), hostile_record(text, 1), unreadable_record(text + "!")]


def pages_of(text: str) -> list[bytes]:
    course = course_of(records_of(text), title=text)
    return [
        class_page(course),
        *(learner_page(course, each) for each in course.standings),
    ]


@pytest.mark.sample(8)
@pytest.mark.parametrize("name", TEXTS)
def test_records_add_no_tags_or_attributes(name: str) -> None:
    plain = sorted(map(repr, (Page(page).shape for page in pages_of("word"))))
    hostile = [Page(page) for page in pages_of(TEXTS[name])]
    assert sorted(repr(page.shape) for page in hostile) == plain
    for page in hostile:
        assert not page.others
        for attribute, pattern in ATTRIBUTE_VALUES.items():
            for value in page.values(attribute):
                assert re.fullmatch(pattern, value), (attribute, value)


@pytest.mark.parametrize("name", TEXTS)
def test_pages_are_short_and_printable(name: str) -> None:
    for page in pages_of(TEXTS[name]):
        assert len(page) < MOST
        assert not UNSHOWABLE.search(page.decode("utf-8"))


def test_shows_hostile_text_as_text() -> None:
    for page in pages_of(TEXTS["script"]):
        assert TEXTS["script"] in Page(page).text
    for page in pages_of(TEXTS["template"]):
        text = Page(page).text
        assert TEXTS["template"] in text and "49" not in text
    for page in pages_of(TEXTS["mathtext"]):
        assert TEXTS["mathtext"] in Page(page).text


def test_backticks_only_create_code() -> None:
    for page in pages_of("`<b>bold</b>` and `one left <i>"):
        parsed = Page(page)
        assert "<b>bold</b>" in parsed.text and "`one left <i>" in parsed.text


def test_page_allows_own_style_without_scripts() -> None:
    course = course_of(records_of("word"), title="word")
    for page in (class_page(course), learner_page(course, course.standings[0])):
        (policy,) = [
            dict(tag.attributes)["content"]
            for tag in Page(page).tags
            if ("http-equiv", "Content-Security-Policy") in tag.attributes
        ]
        assert "default-src 'none'" in policy and "script-src 'none'" in policy
        assert "unsafe" not in policy and "http" not in policy
        assert not Page(page).values("style")
        names = {tag.name for tag in Page(page).tags}
        assert names.isdisjoint({"script", "link", "iframe", "object", "form", "base"})
